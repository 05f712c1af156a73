// Every view of both runs, light and dark, narrow and wide: something is there, nothing is broken,
// nothing is asked of anybody else, and it can be read by those who do not see it.

import { mkdirSync } from "node:fs";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { VIEWS } from "../../src/views";
import { launch, LOOKS, open, settled, violations } from "./browser";

const RUNS = [
  { run: 0, name: "demo" },
  { run: 1, name: "two-hosts" },
];
/** Where pictures go, if somebody wants to look at them. */
const pictures = process.env["PICTURES"];

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
  if (pictures) mkdirSync(pictures, { recursive: true });
});
afterAll(() => browser.close());

describe.each(VIEWS.map((it) => it.id))("%s", (view) => {
  test.each(RUNS.flatMap((run) => LOOKS.map((look) => ({ ...run, ...look }))))(
    "of $name, $theme, $width wide",
    async ({ run, name, ...look }) => {
      const url = `${inject("url")}#${view}${run ? `?run=${run}` : ""}`;
      const { page, errors, foreign } = await open(browser, url, look);
      await page.locator("main").waitFor();
      await settled(page);
      if (pictures) {
        await page.screenshot({
          path: `${pictures}/${view}-${name}-${look.theme}-${look.width}.png`,
        });
      }
      expect(errors).toEqual([]);
      expect(foreign).toEqual([]);
      expect((await page.locator("main").innerText()).trim().length).toBeGreaterThan(20);
      expect(await page.locator("main [role=alert]").count()).toBe(0);
      const overflow = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      expect(overflow).toBeLessThanOrEqual(0);
      expect(await violations(page)).toEqual([]);
      await page.context().close();
    },
  );
});
