// Every link of every finding, over every run of testdata: each lands on something that is lit.

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { launch, open, settled } from "./browser";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

interface Link {
  text: string;
  href: string;
}

/** All findings opened: their links, and what has none. */
async function links(page: Page): Promise<{ links: Link[]; without: string[] }> {
  return page.evaluate(() => {
    const of = (it: Element): Link | null => {
      const anchor = it.matches("a") ? it : it.querySelector(":scope > a, .show-me");
      const href = anchor?.getAttribute("href");
      return href ? { text: it.textContent ?? "", href } : null;
    };
    const places = [...document.querySelectorAll(".finding .sub, .evidence li, .symptoms li")];
    return {
      links: places.map(of).filter((it) => it !== null),
      without: places.filter((it) => of(it) === null).map((it) => it.textContent ?? ""),
    };
  });
}

/** Rows of a table that are lit and in sight. */
const litRows = (page: Page): Promise<number> =>
  page.evaluate(() => {
    const isSeen = (it: Element) => {
      const box = it.getBoundingClientRect();
      const middle = document.elementFromPoint(box.left + 20, box.top + box.height / 2);
      return middle !== null && it.contains(middle);
    };
    return [...document.querySelectorAll("tr.marked")].filter(isSeen).length;
  });

/**
 * Pixels of events that are as bright as without any light, while others are dimmed; and of the
 * line that marks times.
 */
async function litPixels(page: Page): Promise<{ kept: number; dimmed: number; line: number }> {
  const shot = async () => (await page.locator(".tl-canvas").screenshot()).toString("base64");
  const lit = await shot();
  const accent = await page.evaluate(() =>
    getComputedStyle(document.documentElement).getPropertyValue("--accent").trim(),
  );
  await page.getByRole("button", { name: "Show all" }).click();
  await page.locator(".tl-lit").waitFor({ state: "detached" });
  // The strip that named the evidence is gone, and the canvas grew by it: the top stays.
  await page.waitForTimeout(120);
  const all = await shot();
  return page.evaluate(
    async ({ pictures, accent }) => {
      const RULER = 52;
      const images = await Promise.all(
        pictures.map(async (base64) => {
          const image = new Image();
          image.src = `data:image/png;base64,${base64}`;
          await image.decode();
          return image;
        }),
      );
      const width = images[0]!.width;
      const height = Math.min(...images.map((it) => it.height)) - RULER;
      const [lit, all] = images.map((image) => {
        const pen = new OffscreenCanvas(width, image.height).getContext("2d")!;
        pen.drawImage(image, 0, 0);
        return pen.getImageData(0, RULER, width, height).data;
      });
      const paint = new OffscreenCanvas(1, 1).getContext("2d")!;
      // In this shape it comes back, however it is written.
      paint.fillStyle = accent;
      const hex = paint.fillStyle as string;
      const hue = [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
      const found = { kept: 0, dimmed: 0, line: 0 };
      for (let at = 0; at < lit!.length; at += 4) {
        const [one, other] = [lit!, all!].map((it) => [it[at]!, it[at + 1]!, it[at + 2]!]);
        const vivid = (it: number[]) => Math.max(...it) - Math.min(...it);
        if (vivid(other!) >= 24) {
          // What is lit is never fainter than without light.
          if (vivid(one!) >= vivid(other!) - 8) found.kept += 1;
          else found.dimmed += 1;
        }
        const isAccent = one!.every((it, n) => Math.abs(it - hue[n]!) < 8);
        if (at < width * 4 * 3 && isAccent) found.line += 1;
      }
      return found;
    },
    { pictures: [lit, all], accent },
  );
}

const runs = inject("runs");

test.each(runs.map((name, run) => ({ name, run })))("links of $name", async ({ run }) => {
  const base = inject("url");
  const everything = Array.from({ length: 40 }, (_, at) => at + 1).join(",");
  const { page, errors } = await open(
    browser,
    `${base}#overview?run=${run}&open=${encodeURIComponent(everything)}`,
  );
  await settled(page);
  const report = await page.locator(".finding").count();
  const found = await links(page);
  expect(found.without).toEqual([]);
  expect(found.links.length).toBeGreaterThanOrEqual(report);
  const done = new Set<string>();
  let dimmed = 0;
  for (const { href, text } of found.links) {
    if (done.has(href)) continue;
    done.add(href);
    await page.evaluate((it) => (location.hash = it), href);
    await page.locator("main").waitFor();
    await settled(page);
    if (href.startsWith("#timeline")) {
      await page.getByRole("note", { name: "What is lit" }).waitFor();
      await page.waitForTimeout(150);
      await settled(page);
      const lit = await litPixels(page);
      expect(lit.kept + lit.line, `${href}: ${text}`).toBeGreaterThan(0);
      dimmed += lit.dimmed;
    } else {
      await page.locator("tr.marked").first().waitFor();
      expect(await litRows(page), `${href}: ${text}`).toBeGreaterThan(0);
    }
  }
  // Light that leaves all as it was shows nothing.
  if ([...done].some((it) => it.startsWith("#timeline"))) expect(dimmed).toBeGreaterThan(0);
  expect(errors).toEqual([]);
  await page.context().close();
});
