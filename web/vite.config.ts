import { defineConfig } from "vitest/config";

// `npm run dev` beside `strobe serve PATH --no-open --port 7878`: the page reloads as it is written.
const server = process.env["STROBE_URL"] ?? "http://127.0.0.1:7878";

export default defineConfig({
  base: "./",
  build: {
    target: "es2022",
    // Every asset is a file of its own: the server's policy allows no data: scripts or styles.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  // The server answers only its own page: Host and Origin are made to be its own.
  server: {
    proxy: { "/api": { target: server, changeOrigin: true, headers: { origin: server } } },
  },
  test: { include: ["tests/unit/**/*.test.ts"] },
});
