// Takes the README's pictures from the current build: `web/pictures`.

import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, inject, test } from "vitest";
import { launch, open, settled } from "./e2e/browser";

const folder = resolve(import.meta.dirname, "../../docs/pictures");
const of = (name: string): number => inject("runs").indexOf(`testdata/${name}`);
const PICTURES: [name: string, address: string, theme: "light" | "dark"][] = [
  ["overview", "#overview", "light"],
  ["timeline", "#timeline", "light"],
  ["timeline-gpu", `#timeline?run=${of("synthetic/two_hosts")}&event=5`, "dark"],
  ["ops", "#ops", "light"],
  ["kernels", `#kernels?run=${of("synthetic/two_hosts")}`, "dark"],
  ["flame", `#flame?run=${of("captured/run_folder")}`, "light"],
  ["input", "#input", "light"],
  ["memory", "#memory", "dark"],
  ["compile", `#compile?run=${of("captured/retrace_loop")}`, "light"],
  ["compare", `#compare?with=${of("captured/retrace_loop")}`, "light"],
  ["query", "#query", "dark"],
  ["scalars", `#scalars?run=${of("captured/scalars")}`, "light"],
];

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
  mkdirSync(folder, { recursive: true });
});
afterAll(() => browser.close());

test.each(PICTURES)("%s", async (name, address, theme) => {
  const { page } = await open(browser, `${inject("url")}${address}`, { theme, width: 1280 });
  await page.locator("main").waitFor();
  await settled(page);
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${folder}/${name}.png` });
  await page.context().close();
});
