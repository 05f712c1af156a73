import { defineConfig } from "vitest/config";

// One browser, one server: files run one after another.
export default defineConfig({
  define: { __EXPORTED__: false },
  test: {
    include: process.env["TAKE_PICTURES"] ? ["tests/pictures.ts"] : ["tests/e2e/**/*.test.ts"],
    globalSetup: ["tests/e2e/server.ts"],
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
