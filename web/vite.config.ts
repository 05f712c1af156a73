import { defineConfig } from "vitest/config";

// `npm run dev` beside `strobe serve PATH --no-open --port 7878`: the page reloads as it is written.
const server = process.env["STROBE_URL"] ?? "http://127.0.0.1:7878";

// `vite build --mode export` makes the same page as one script, for files that carry their data.
export default defineConfig(({ mode }) => ({
  base: "./",
  define: { __EXPORTED__: mode === "export" },
  build: {
    target: "es2022",
    // Every asset is a file of its own: the server's policy allows no data: scripts or styles.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    ...(mode === "export" && {
      cssCodeSplit: false,
      rollupOptions: {
        input: "src/export.tsx",
        output: {
          codeSplitting: false,
          entryFileNames: "page.js",
          assetFileNames: "page.[ext]",
        },
      },
    }),
  },
  server: {
    proxy: {
      // The server refuses what other origins ask it to do.
      "/api": { target: server, changeOrigin: true, headers: { origin: server } },
    },
  },
  test: { include: ["tests/unit/**/*.test.ts"] },
}));
