// The frame: links, Back, runs, themes, evidence one click away.

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import type { Report } from "../../src/data/types";
import { VIEWS } from "../../src/views";
import { asked, launch, open, settled, violations } from "./browser";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

test("the overview says what the report says", async () => {
  const { page } = await open(browser, inject("url"));
  await settled(page);
  const report = await asked<Report>(page, "runs/0/report");
  const text = await page.locator("main").innerText();
  expect(text).toContain(report.headline);
  for (const finding of report.findings) {
    expect(text).toContain(finding.rule);
    expect(text).toContain(finding.title);
  }
  await page.context().close();
});

test("the rail marks views that have nothing, and only those", async () => {
  const { page } = await open(browser, inject("url"));
  for (const run of [0, 1]) {
    for (const view of VIEWS.filter((it) => it.needs)) {
      await page.goto(`${inject("url")}#${view.id}?run=${run}`);
      await settled(page);
      // Beside what it lacks a view may have other parts.
      const parts = await page.locator("main section").count();
      const isEmpty = parts === 0 && (await page.locator("main .empty").count()) > 0;
      const entry = page.locator(`.rail a[href^="#${view.id}"]`);
      const marks = entry.getByRole("img", { name: view.needs!.without });
      expect([run, view.id, await marks.count()]).toEqual([run, view.id, isEmpty ? 1 : 0]);
    }
  }
  await page.context().close();
});

test("show me lands on the evidence, and Back returns", async () => {
  const { page } = await open(browser, inject("url"));
  await settled(page);
  await page
    .getByRole("link", { name: /show me/i })
    .first()
    .click();
  await page.waitForURL(/#(timeline|input|ops|memory|compile|hardware)/);
  await settled(page);
  await page.goBack();
  await page.getByRole("heading", { level: 1 }).waitFor();
  expect(page.url()).not.toContain("#timeline");
  await page.context().close();
});

test.each([
  "overview?rule=input-serial-map",
  "ops?open=adjust_gamma%2Fpow",
  "kernels?run=1&open=0",
])("what is opened can be read by everybody (%s)", async (view) => {
  const { page } = await open(browser, `${inject("url")}#${view}`);
  await settled(page);
  expect(await violations(page)).toEqual([]);
  await page.context().close();
});

test("the run picker keeps the view", async () => {
  const { page } = await open(browser, `${inject("url")}#ops`);
  await settled(page);
  await page.getByRole("combobox", { name: "Run" }).selectOption("1");
  await page.waitForURL(/#ops\?run=1/);
  await page.getByText("MatMul").first().waitFor();
  await page.context().close();
});

test("a host and some steps can be chosen, go along, and Back undoes them", async () => {
  const { page } = await open(browser, `${inject("url")}#overview?run=1`);
  await settled(page);
  await page.getByRole("combobox", { name: "Host" }).selectOption("trainer-1");
  await page.waitForURL(/host=trainer-1/);
  await page.getByText(/trainer-1: .* a step, over \d+/).waitFor();
  await page.getByRole("textbox", { name: /Steps/ }).fill("3-5");
  await page.keyboard.press("Enter");
  await page.getByText(/trainer-1 · steps 3-5: .* over 3\./).waitFor();
  await page.getByRole("link", { name: "Timeline", exact: true }).click();
  await page.getByRole("application").waitFor();
  await settled(page);
  expect(page.url()).toContain("host=trainer-1&steps=3-5");
  await page.goBack();
  await page.goBack();
  await page.getByText(/trainer-1: .* a step, over \d+/).waitFor();
  await page.context().close();
});

test("the theme is a choice that lasts", async () => {
  const { page } = await open(browser, inject("url"), { theme: "light", width: 1280 });
  await settled(page);
  const theme = () => page.evaluate(() => document.documentElement.dataset["theme"]);
  expect(await theme()).toBe("light");
  await page.getByRole("button", { name: /light|dark/i }).click();
  expect(await theme()).toBe("dark");
  await page.reload();
  await settled(page);
  expect(await theme()).toBe("dark");
  await page.context().close();
});

test("a query answers, and a wrong one says what is wrong", async () => {
  const { page } = await open(
    browser,
    `${inject("url")}#query?q=${encodeURIComponent("select count(*) as n_events from event")}`,
  );
  await settled(page);
  await page.getByRole("button", { name: /run/i }).first().click();
  await page.getByText(/4,058/).first().waitFor();
  await page.context().close();
});

test("an unknown view and an unknown run are said in words", async () => {
  const wrongView = await open(browser, `${inject("url")}#nothing`);
  await wrongView.page.getByRole("alert").waitFor();
  await wrongView.page.context().close();
  const wrongRun = await open(browser, `${inject("url")}#overview?run=99`);
  await wrongRun.page.getByText("there is no such run").waitFor();
  await wrongRun.page.context().close();
});

test("a narrow window has room for all of it", async () => {
  const { page, errors } = await open(browser, `${inject("url")}#input`, {
    theme: "light",
    width: 800,
  });
  await settled(page);
  const widthOf = async (of: string) => (await page.locator(of).first().boundingBox())!.width;
  expect(await widthOf(".finding .said")).toBeGreaterThan(300);
  await page.evaluate(() => (location.hash = "#overview"));
  await settled(page);
  expect(await widthOf(".finding .title")).toBeGreaterThan(300);

  await page.evaluate(() => (location.hash = "#timeline"));
  await page.locator(".tl-bar").getByRole("button", { name: "Keys" }).waitFor();
  const outside = await page.evaluate(() =>
    [...document.querySelectorAll(".tl-bar button, .tl-bar input, .tl-bar select, .tl-foot *")]
      .filter((it) => it.getBoundingClientRect().right > innerWidth)
      .map((it) => it.textContent),
  );
  expect(outside).toEqual([]);
  expect(errors).toEqual([]);
  await page.context().close();
});

test.each([800, 1280, 1920])("what can be asked covers no answer, %i wide", async (width) => {
  const { page } = await open(browser, `${inject("url")}#query`, { theme: "light", width });
  await page.locator(".query-answer tbody tr").first().waitFor();
  const [side, answer] = await Promise.all(
    [".query-side", ".query-answer"].map((it) => page.locator(it).boundingBox()),
  );
  const isBelow = side!.y >= answer!.y + answer!.height;
  const isRight = side!.x >= answer!.x + answer!.width;
  expect(width > 1000 ? isRight : isBelow).toBe(true);
  expect(answer!.height).toBeGreaterThan(250);
  await page.context().close();
});

test("a server that is gone is said in words", async () => {
  const { page } = await open(browser, inject("url"));
  await settled(page);
  await page.route("**/api/**", (it) => it.abort());
  await page.evaluate(() => (location.hash = "#kernels"));
  await page.getByText("the server does not answer").waitFor();
  await page.context().close();
});
