// Takes the README's pictures from the current build: `web/pictures`.

import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, inject, test } from "vitest";
import { launch, open, settled } from "./e2e/browser";

const folder = resolve(import.meta.dirname, "../../docs/pictures");
const PICTURES: [name: string, address: string, theme: "light" | "dark"][] = [
  ["overview", "#overview", "light"],
  ["timeline", "#timeline", "light"],
  ["timeline-gpu", "#timeline?run=1&event=5", "dark"],
  ["ops", "#ops", "light"],
  ["kernels", "#kernels?run=1", "dark"],
  ["input", "#input", "light"],
  ["memory", "#memory", "dark"],
  ["hardware", "#hardware?run=4", "light"],
  ["compile", "#compile?run=2", "light"],
  ["compare", "#compare?with=2", "light"],
  ["query", "#query", "dark"],
  ["scalars", "#scalars?run=3", "light"],
];

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
  mkdirSync(folder, { recursive: true });
});
afterAll(() => browser.close());

const taken = PICTURES.filter(([name]) => name !== "hardware" || process.env["RUN_FOLDER"]);

test.each(taken)("%s", async (name, address, theme) => {
  const { page } = await open(browser, `${inject("url")}${address}`, { theme, width: 1280 });
  await page.locator("main").waitFor();
  await settled(page);
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${folder}/${name}.png` });
  await page.context().close();
});
