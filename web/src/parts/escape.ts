// Esc closes what was opened last.

import { useEffect, useRef } from "preact/hooks";

const open: { close: () => void }[] = [];

addEventListener("keydown", (event) => {
  const last = open[open.length - 1];
  if (event.key !== "Escape" || event.defaultPrevented || !last) return;
  event.preventDefault();
  last.close();
});

/** While `active`, Esc calls `close`, unless something else was opened since. */
export function useEscape(active: boolean, close: () => void): void {
  const latest = useRef(close);
  latest.current = close;
  useEffect(() => {
    if (!active) return;
    const entry = { close: () => latest.current() };
    open.push(entry);
    return () => {
      open.splice(open.indexOf(entry), 1);
    };
  }, [active]);
}
