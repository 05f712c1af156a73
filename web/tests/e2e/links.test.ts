// Every link that a view shows, also below rows that can be opened, leads to a view that has what
// it promises. Of each kind of link in a view a few are followed, on two runs; RUNS=10 takes ten,
// and ALL_LINKS follows every link.

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { VIEWS } from "../../src/views";
import { launch, open, settled } from "./browser";

const all = Boolean(process.env["ALL_LINKS"]);
/** Of links that differ in nothing but whom they are about. */
const OF_A_KIND = all ? Infinity : 2;
/** Rows and notes that are opened to see what is below them. */
const OPENED = all ? 12 : 2;

const names = inject("runs");
const n = Number(process.env["RUNS"] ?? 2);
const every = Math.max(1, Math.floor(names.length / n));
const RUNS = names.map((name, run) => ({ name, run })).filter((it) => it.run % every === 0);

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

const shown = (page: Page): Promise<string[]> =>
  page.evaluate(() =>
    [...document.querySelectorAll("a[href]")].map((it) => it.getAttribute("href") ?? ""),
  );

/** Waits until a view is there, whose script may have to be fetched first. */
async function arrived(page: Page, view: string): Promise<void> {
  await page.waitForFunction((view) => {
    const current = document.querySelector("nav [aria-current=page]")?.getAttribute("href") ?? "";
    const main = document.querySelector("main");
    return current.split("?")[0] === `#${view}` && (main?.innerText.trim().length ?? 0) > 20;
  }, view);
  await settled(page);
}

/** The links of a view, and what is seen only when rows and notes are opened. */
async function links(page: Page): Promise<Set<string>> {
  const found = new Set(await shown(page));
  for (const what of ["main summary", "main [aria-expanded=false]", "main tbody tr.opens"]) {
    const closed = page.locator(what);
    for (let at = 0; at < OPENED && at < (await closed.count()); at += 1) {
      const it = closed.nth(at);
      if (!(await it.isVisible())) continue;
      // Also where what is open by now covers it.
      await it.evaluate((it) => (it as HTMLElement).click());
      await settled(page);
      for (const href of await shown(page)) found.add(href);
    }
  }
  return found;
}

/** The view and the names of what it is told. */
function kind(href: string): string {
  const [view, query] = href.split("?");
  return `${view} ${[...new URLSearchParams(query).keys()].join()}`;
}

describe.each(RUNS)("$name", ({ run }) => {
  test.each(VIEWS.map((it) => it.id))(
    "links of %s",
    async (view) => {
      const here = `#${view}${run ? `?run=${run}` : ""}`;
      const { page, errors, foreign } = await open(browser, `${inject("url")}${here}`);
      await arrived(page, view);
      const followed = new Map<string, number>();
      for (const href of await links(page)) {
        if (!href.startsWith("#")) {
          const answer = await page.request.get(new URL(href, page.url().split("#")[0]).href);
          expect(answer.status(), href).toBe(200);
          continue;
        }
        const nth = (followed.get(kind(href)) ?? 0) + 1;
        followed.set(kind(href), nth);
        if (nth > OF_A_KIND) continue;
        await page.evaluate((it) => (location.hash = it), href);
        await arrived(page, href.slice(1).split("?")[0]!);
        const said = await page.locator("main").innerText();
        expect(await page.locator("main [role=alert]").count(), `${href}: ${said}`).toBe(0);
        const to = new URLSearchParams(href.split("?")[1]);
        if (href.startsWith("#timeline") && to.has("q")) {
          await page.locator(".tl-count").waitFor();
          expect(await page.locator(".tl-count").innerText(), href).not.toBe("0");
        }
        if (to.has("filter") || to.has("scope")) {
          expect(await page.locator("main tbody tr").count(), href).toBeGreaterThan(0);
        }
        expect(errors, href).toEqual([]);
      }
      expect(followed.size).toBeGreaterThan(0);
      expect(foreign).toEqual([]);
      await page.context().close();
    },
    all ? 600_000 : 60_000,
  );
});
