/** Whether this is the script inside an exported file, which has no server. */
declare const __EXPORTED__: boolean;
