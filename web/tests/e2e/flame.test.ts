// The flame graph: sampled stacks and scopes, zoomed, narrowed, searched, read without a pointer.

import { mkdirSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import type { Cell, TableData } from "../../src/data/types";
import { asked, launch, open, settled, violations } from "./browser";

/** Where pictures go, if somebody wants to look at them. */
const pictures = process.env["PICTURES"];

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
  if (pictures) mkdirSync(pictures, { recursive: true });
});
afterAll(() => browser.close());

const sampled = (): number => inject("runs").indexOf("testdata/captured/run_folder");

async function flame(query = "", width = 1280, theme: "light" | "dark" = "light") {
  const url = `${inject("url")}#flame?run=${sampled()}${query && `&${query}`}`;
  const watched = await open(browser, url, { theme, width });
  await watched.page.getByRole("group", { name: /arrow keys/ }).waitFor();
  await settled(watched.page);
  return watched;
}

const bar = (page: Page, name: RegExp) => page.locator(".flame").getByRole("button", { name });

const widthOf = async (page: Page, name: RegExp): Promise<number> =>
  (await bar(page, name).first().boundingBox())!.width;

const looks = [800, 1280, 1920].flatMap((width) =>
  (["light", "dark"] as const).flatMap((theme) =>
    ["", "order=time", "of=scopes", "find=read", "steps=7"].map((query) => ({
      width,
      theme,
      query,
    })),
  ),
);

test.each(looks)("$query, $theme, $width wide", async ({ query, theme, width }) => {
  const { page, errors } = await flame(query, width, theme);
  if (pictures) {
    await page.screenshot({ path: `${pictures}/flame-${query || "plain"}-${theme}-${width}.png` });
  }
  expect(await violations(page)).toEqual([]);
  const overflow = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  expect(overflow).toBeLessThanOrEqual(0);
  expect(errors).toEqual([]);
  await page.context().close();
});

test("what is drawn is as wide as the table says", async () => {
  const { page } = await flame();
  const table = await asked<TableData>(page, `runs/${sampled()}/tables/python_stack`);
  const at = (name: string) => table.columns.findIndex((it) => it.name === name);
  const inSteps = table.rows.filter((it) => it[at("lane")] === 0 && it[at("step")] !== null);
  const sum = (rows: Cell[][]) => rows.reduce((sum, it) => sum + Number(it[at("dur_ps")]), 0);
  const all = sum(inSteps.filter((it) => it[at("depth")] === 0));
  const log = sum(inSteps.filter((it) => it[at("function")] === "write_log"));
  const whole = await widthOf(page, /^All of the thread/);
  expect(log).toBeGreaterThan(0);
  expect((await widthOf(page, /^write_log /)) / whole).toBeCloseTo(log / all, 1);
  // Time order draws the same time, in more pieces.
  await page.getByRole("button", { name: "Time order" }).click();
  await page.waitForURL(/order=time/);
  await settled(page);
  await bar(page, /^write_log /)
    .nth(1)
    .waitFor();
  const together = await bar(page, /^write_log /).evaluateAll((all) =>
    all.reduce((sum, it) => sum + it.getBoundingClientRect().width, 0),
  );
  expect(together / whole).toBeCloseTo(log / all, 1);
  await page.context().close();
});

test("a click zooms in and tells the line; Back and Esc return", async () => {
  const { page, errors } = await flame();
  const before = await widthOf(page, /^write_log /);
  await bar(page, /^write_log /).click();
  await page.waitForURL(/zoom=/);
  const panel = page.getByRole("complementary", { name: "Chosen" });
  await panel.getByText("standardize(log)").waitFor();
  await panel.getByText(/train\.py/).waitFor();
  expect(await widthOf(page, /^write_log /)).toBeGreaterThan(before * 2);
  expect(await violations(page)).toEqual([]);
  if (pictures) await page.screenshot({ path: `${pictures}/flame-zoomed.png` });
  await page.goBack();
  await page.waitForURL((it) => !it.hash.includes("zoom="));
  expect(await widthOf(page, /^write_log /)).toBeCloseTo(before, 0);
  await page.goForward();
  await page.waitForURL(/zoom=/);
  // The link alone shows the same, in another order too.
  await page.reload();
  await panel.getByText("standardize(log)").waitFor();
  await page.getByRole("button", { name: "Time order" }).click();
  await panel.getByText("standardize(log)").waitFor();
  await page.keyboard.press("Escape");
  await panel.locator(".name").getByText(/^main/).waitFor();
  expect(errors).toEqual([]);
  await page.context().close();
});

test("keys move, zoom in and out", async () => {
  const { page } = await flame();
  await bar(page, /^All of the thread/).focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute("aria-label"));
  expect(await focused()).toMatch(/^main /);
  await page.keyboard.press("Enter");
  const chosen = page.getByRole("complementary", { name: "Chosen" }).locator(".name");
  await chosen.getByText(/^main/).waitFor();
  expect(await focused()).toMatch(/^main /);
  await page.keyboard.press("Backspace");
  await chosen.getByText(/^<module>/).waitFor();
  await page.context().close();
});

test("some steps only", async () => {
  const { page } = await flame();
  const title = () => page.getByRole("heading", { level: 1 }).innerText();
  const all = await title();
  await page.getByRole("textbox", { name: /Steps/ }).fill("7");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: /in step 7/ }).waitFor();
  expect(await title()).not.toBe(all);
  await page.getByRole("textbox", { name: /Steps/ }).fill("4000");
  await page.keyboard.press("Enter");
  await page.getByText(/Nothing was seen/).waitFor();
  await page.context().close();
});

test("what is looked for stands out, and its share is said", async () => {
  const { page } = await flame("find=standardize");
  await page.getByRole("status").getByText(/%$/).waitFor();
  expect(await page.locator(".flame .matched").count()).toBeGreaterThan(0);
  expect(await page.locator(".flame .unmatched").count()).toBeGreaterThan(0);
  await page.getByRole("searchbox", { name: "Find" }).fill("nobody");
  await page.getByRole("status").getByText("no match").waitFor();
  await page.context().close();
});

test.each([0.02, 0.5, 0.98])("the box at the pointer is wholly seen (%f)", async (across) => {
  const { page } = await flame("", 800);
  const { x, y, width } = (await bar(page, /^All of the thread/).boundingBox())!;
  await page.mouse.move(x + width * across, y + 8);
  const box = (await page.locator(".flame-told").boundingBox())!;
  const window = page.viewportSize()!;
  expect(box.x).toBeGreaterThanOrEqual(0);
  expect(box.y).toBeGreaterThanOrEqual(0);
  expect(box.x + box.width).toBeLessThanOrEqual(window.width);
  expect(box.y + box.height).toBeLessThanOrEqual(window.height);
  await page.context().close();
});

test("threads and scopes can be chosen", async () => {
  const { page, errors } = await flame();
  const thread = page.getByRole("combobox", { name: "Thread" });
  await thread.selectOption({ index: 1 });
  await page.waitForURL(/thread=/);
  await bar(page, /^read_example /)
    .first()
    .waitFor();
  await page.getByRole("button", { name: "Scopes" }).click();
  await page.waitForURL(/of=scopes/);
  await bar(page, /^optimizer /).click();
  await page.getByRole("link", { name: "Its ops" }).click();
  await page.waitForURL(/#ops\?.*scope=optimizer/);
  expect(errors).toEqual([]);
  await page.context().close();
});

test("a run without stacks says how to get them", async () => {
  const { page } = await open(browser, `${inject("url")}#flame?of=python`);
  await page.getByText(/no sampled Python stacks/).waitFor();
  await page.getByText("strobe run -- python train.py").waitFor();
  await page.context().close();
});
