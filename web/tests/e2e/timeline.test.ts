// The timeline as a person uses it: keys, wheel, click, search, range, links.

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { launch, open, settled, violations, type Watched } from "./browser";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

async function timeline(query: string): Promise<Watched> {
  const watched = await open(browser, `${inject("url")}#timeline?${query}`);
  await watched.page.getByRole("application").waitFor();
  await settled(watched.page);
  return watched;
}

const window = async (page: Page): Promise<{ from: number; to: number }> => {
  // The address follows a moment later: browsers limit how often it changes.
  await page.waitForTimeout(600);
  const query = new URLSearchParams(page.url().split("?")[1]);
  return { from: Number(query.get("from")), to: Number(query.get("to")) };
};

/** How many different colours are on the canvas: below the ruler an empty one has its ground and lines. */
async function colours(page: Page): Promise<number> {
  const picture = await page.locator(".tl-canvas").screenshot();
  return page.evaluate(
    async ({ base64, RULER }) => {
      const image = new Image();
      image.src = `data:image/png;base64,${base64}`;
      await image.decode();
      const pen = new OffscreenCanvas(image.width, image.height).getContext("2d")!;
      pen.drawImage(image, 0, 0);
      const { data } = pen.getImageData(0, RULER, image.width, image.height - RULER);
      return new Set(new Uint32Array(data.buffer)).size;
    },
    { base64: picture.toString("base64"), RULER: 60 },
  );
}

test.each(["run=1", "run=1&painter=canvas", "run=1&painter=webgl"])(
  "events are drawn (%s)",
  async (query) => {
    const { page, errors } = await timeline(query);
    expect(await colours(page)).toBeGreaterThan(8);
    expect(errors).toEqual([]);
    await page.context().close();
  },
);

test("both painters draw the same picture", async () => {
  const pictures: string[] = [];
  for (const painter of ["canvas", "webgl"]) {
    const { page } = await timeline(`run=1&painter=${painter}`);
    const picture = await page.locator(".tl-canvas").screenshot();
    pictures.push(picture.toString("base64"));
    await page.context().close();
  }
  const { page } = await timeline("run=1");
  const differ = await page.evaluate(async (pictures) => {
    const pixels = pictures.map(async (base64) => {
      const image = new Image();
      image.src = `data:image/png;base64,${base64}`;
      await image.decode();
      const pen = new OffscreenCanvas(image.width, image.height).getContext("2d")!;
      pen.drawImage(image, 0, 0);
      return pen.getImageData(0, 0, image.width, image.height).data;
    });
    const [one, other] = await Promise.all(pixels);
    let n = 0;
    for (let at = 0; at < one!.length; at += 4) {
      const far = [0, 1, 2].some((it) => Math.abs(one![at + it]! - other![at + it]!) > 48);
      if (far) n += 1;
    }
    return n / (one!.length / 4);
  }, pictures);
  // Letters are smoothed in their own ways.
  expect(differ).toBeLessThan(0.02);
  await page.context().close();
});

test("keys zoom and pan, and the address follows", async () => {
  const { page } = await timeline("run=1&from=20000000000&to=60000000000");
  await page.getByRole("application").focus();
  const before = await window(page);
  expect(before).toEqual({ from: 20_000_000_000, to: 60_000_000_000 });
  for (let n = 0; n < 3; n += 1) await page.keyboard.press("w");
  const closer = await window(page);
  expect(closer.to - closer.from).toBeLessThan((before.to - before.from) * 0.9);
  for (let n = 0; n < 3; n += 1) await page.keyboard.press("d");
  const later = await window(page);
  expect(later.from).toBeGreaterThan(closer.from);
  await page.keyboard.press("0");
  const whole = await window(page);
  expect(whole.to - whole.from).toBeGreaterThan(100_000_000_000);
  await page.context().close();
});

test("the wheel with Ctrl zooms to the pointer", async () => {
  const { page } = await timeline("run=1&from=0&to=1000000000000");
  const box = (await page.locator(".tl-canvas").boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.25, box.y + 120);
  await page.keyboard.down("Control");
  for (let n = 0; n < 4; n += 1) await page.mouse.wheel(0, -200);
  await page.keyboard.up("Control");
  const { from, to } = await window(page);
  expect(to - from).toBeLessThan(900_000_000_000);
  // What was under the pointer stays there.
  const under = from + (to - from) * 0.25;
  expect(Math.abs(under - 250_000_000_000)).toBeLessThan((to - from) * 0.05);
  await page.context().close();
});

test("two fingers zoom, one moves", async () => {
  const { page } = await timeline("run=1&from=20000000000&to=60000000000");
  const driver = await page.context().newCDPSession(page);
  await driver.send("Emulation.setTouchEmulationEnabled", { enabled: true, maxTouchPoints: 2 });
  const touch = (type: "touchStart" | "touchMove" | "touchEnd", ...at: number[]) =>
    driver.send("Input.dispatchTouchEvent", {
      type,
      touchPoints: at.map((x, id) => ({ x, y: 300, id })),
    });
  await touch("touchStart", 750, 850);
  for (let n = 1; n <= 10; n += 1) await touch("touchMove", 750 - 15 * n, 850 + 15 * n);
  await touch("touchEnd");
  const closer = await window(page);
  const span = closer.to - closer.from;
  // The fingers end four times as far apart.
  expect(span / 10_000_000_000).toBeCloseTo(1, 0);
  await touch("touchStart", 900);
  for (let n = 1; n <= 10; n += 1) await touch("touchMove", 900 - 20 * n);
  await touch("touchEnd");
  const moved = await window(page);
  expect(moved.from).toBeGreaterThan(closer.from);
  expect((moved.to - moved.from) / span).toBeCloseTo(1, 3);
  await page.context().close();
});

test("a linked event shows its details and the call that launched it", async () => {
  const { page } = await timeline("run=1&event=5");
  const panel = page.getByRole("complementary", { name: "Selected event" });
  await panel.waitFor();
  const text = await panel.innerText();
  expect(text).toContain("gemm");
  expect(text).toContain("cuLaunchKernel");
  expect(text).toContain("kernel_details");
  expect(await violations(page)).toEqual([]);
  await page.getByRole("application").focus();
  await page.keyboard.press("Escape");
  await panel.waitFor({ state: "detached" });
  await page.context().close();
});

test("search finds names, counts them and walks through the hits", async () => {
  const { page } = await timeline("run=1");
  await page.getByRole("application").focus();
  await page.keyboard.press("/");
  await page.getByRole("searchbox", { name: "Search events by name" }).fill("gemm");
  const found = page.getByRole("group", { name: "Names found" });
  await found.waitFor();
  expect(await found.innerText()).toContain("176");
  expect(await violations(page)).toEqual([]);
  const before = page.url();
  await page.keyboard.press("Enter");
  await page.waitForTimeout(600);
  expect(page.url()).not.toBe(before);
  await page.context().close();
});

test("a range that is dragged open is added up", async () => {
  const { page } = await timeline("run=1");
  const box = (await page.locator(".tl-canvas").boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.4, box.y + 150);
  await page.keyboard.down("Shift");
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.7, box.y + 150, { steps: 5 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  const panel = page.getByRole("complementary", { name: "Selected range" });
  await panel.waitFor();
  expect(await panel.innerText()).toMatch(/selected/);
  await panel.getByRole("row").nth(2).waitFor();
  expect(await violations(page)).toEqual([]);
  await page.context().close();
});

test("? lists the keys", async () => {
  const { page } = await timeline("run=1");
  await page.getByRole("application").focus();
  await page.keyboard.press("?");
  expect(await page.getByLabel("Keys of the timeline").innerText()).toContain("w");
  expect(await violations(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await page.context().close();
});
