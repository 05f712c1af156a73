// The timeline as a person uses it: keys, wheel, click, search, range, links.

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { asked, handedOver, launch, open, settled, violations, type Watched } from "./browser";

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

const runCalled = (name: string): string => `run=${inject("runs").indexOf(`testdata/${name}`)}`;

/** Waits for the address to have something, which it follows a moment later. */
const inAddress = (page: Page, text: string) =>
  page.waitForURL((it) => decodeURIComponent(it.hash).includes(text));

/** A point of the canvas, as parts of its width and height. */
async function pointAt(page: Page, x: number, y: number): Promise<{ x: number; y: number }> {
  const box = (await page.locator(".tl-canvas").boundingBox())!;
  return { x: box.x + box.width * x, y: box.y + box.height * y };
}

/** Where events of the driving thread are, on the screen. */
async function firstRow(page: Page): Promise<number> {
  const box = (await page.locator(".tl-head.tl-driving").first().boundingBox())!;
  return box.y + 8;
}

test("selecting moves nothing", async () => {
  const { page, errors } = await timeline("run=1&from=20000000000&to=60000000000");
  const width = async () => (await page.locator(".tl-canvas").boundingBox())!.width;
  const before = { ...(await window(page)), width: await width() };
  const [y, { x }] = [await firstRow(page), await pointAt(page, 0.4, 0)];
  await page.mouse.click(x, y);
  const panel = page.getByRole("complementary", { name: "Selected event" });
  await panel.getByText("duration").waitFor();
  const after = { ...(await window(page)), width: await width() };
  expect(after.width).toBeLessThan(before.width - 200);
  const scale = (it: typeof before) => (it.to - it.from) / it.width;
  expect(after.from).toBe(before.from);
  expect(scale(after) / scale(before)).toBeCloseTo(1, 6);
  // The same again, at the same place: what is under the pointer is what was selected.
  const named = await panel.getByRole("heading", { level: 2 }).innerText();
  await page.mouse.move(x, y);
  await page.locator(".tl-hover").waitFor();
  expect(await page.locator(".tl-hover b").innerText()).toBe(named);
  await page.getByRole("application").focus();
  await page.keyboard.press("Escape");
  await panel.waitFor({ state: "detached" });
  const closed = { ...(await window(page)), width: await width() };
  expect([closed.from, closed.width]).toEqual([before.from, before.width]);
  expect(scale(closed) / scale(before)).toBeCloseTo(1, 6);
  expect(errors).toEqual([]);
  await page.context().close();
});

test("what was selected under the panel stays in sight", async () => {
  const { page } = await timeline("run=1&from=20000000000&to=60000000000");
  const [y, { x }] = [await firstRow(page), await pointAt(page, 0.98, 0)];
  await page.mouse.click(x, y);
  await page.getByRole("complementary", { name: "Selected event" }).getByText("begins").waitFor();
  const { from, to } = await window(page);
  const id = Number(new URLSearchParams(page.url().split("?")[1]).get("event"));
  const { start_ps } = await asked<{ start_ps: number }>(page, `runs/1/events/${id}`);
  expect(start_ps).toBeLessThan(to);
  expect(from).toBeGreaterThanOrEqual(20_000_000_000);
  await page.context().close();
});

test.each([
  [0.99, 0.5],
  [0.5, 0.97],
  [0.99, 0.97],
])("the box at the pointer is wholly seen (%f, %f)", async (across, down) => {
  const { page } = await timeline("run=1&from=20000000000&to=60000000000");
  const { x, y } = await pointAt(page, across, down);
  // Up from there to the next event.
  for (let up = 0; up < 60 && (await page.locator(".tl-hover").count()) === 0; up += 1) {
    await page.mouse.move(x, y - 8 * up);
    await page.waitForTimeout(30);
  }
  await page.waitForTimeout(300);
  const box = (await page.locator(".tl-hover").boundingBox())!;
  const stage = (await page.locator(".tl-stage").boundingBox())!;
  expect(box.x).toBeGreaterThanOrEqual(stage.x);
  expect(box.y).toBeGreaterThanOrEqual(stage.y);
  expect(box.x + box.width).toBeLessThanOrEqual(stage.x + stage.width);
  expect(box.y + box.height).toBeLessThanOrEqual(stage.y + stage.height);
  await page.context().close();
});

test("the table of a range is whole", async () => {
  const { page } = await timeline("run=0&range=1000000000-60000000000");
  const panel = page.getByRole("complementary", { name: "Selected range" });
  await panel.getByRole("row").nth(2).waitFor();
  const cut = await panel.evaluate((it) => {
    const inside = it.getBoundingClientRect();
    return [...it.querySelectorAll("th, tr:nth-child(2) td")]
      .filter((cell) => {
        const box = cell.getBoundingClientRect();
        return box.right > inside.right + 1 || box.left < inside.left || box.width < 30;
      })
      .map((cell) => cell.textContent);
  });
  expect(cut).toEqual([]);
  // All of its rows are reached by scrolling once, in the table.
  const scrolls = await panel.evaluate((it) => it.scrollHeight - it.clientHeight);
  expect(scrolls).toBeLessThanOrEqual(1);
  expect(await violations(page)).toEqual([]);
  await page.context().close();
});

test("threads are told apart by their names", async () => {
  const { page } = await timeline("run=0&tracks=tf_");
  const names = await page.locator(".tl-rows .tl-head:not(.tl-group) .tl-name").allInnerTexts();
  expect(names.length).toBeGreaterThan(2);
  expect(new Set(names).size).toBe(names.length);
  // The number at the end tells them apart, so it is never cut off.
  const cut = await page
    .locator(".tl-rows .tl-head:not(.tl-group) .tl-name")
    .evaluateAll((all) =>
      all.filter((it) => it.scrollWidth > it.clientWidth).map((it) => it.textContent),
    );
  expect(cut).toEqual([]);
  await page.context().close();
});

test.each(["canvas", "webgl"])(
  "painted by %s, a device that is busy for 23 of 100 looks like that",
  async (by) => {
    const [from, to] = [5_000_000_000, 25_000_000_000];
    const { page } = await timeline(
      `${runCalled("synthetic/tiny_ops")}&from=${from}&to=${to}&painter=${by}`,
    );
    const row = page.locator(".tl-rows .tl-head:not(.tl-group):not(.tl-driving)").first();
    const { y, height } = (await row.boundingBox())!;
    const canvas = page.locator(".tl-canvas");
    const top = y - (await canvas.boundingBox())!.y;
    const picture = (await canvas.screenshot()).toString("base64");
    const ink = await page.evaluate(
      async ({ picture, top, height }) => {
        const image = new Image();
        image.src = `data:image/png;base64,${picture}`;
        await image.decode();
        const pen = new OffscreenCanvas(image.width, image.height).getContext("2d")!;
        pen.drawImage(image, 0, 0);
        const style = getComputedStyle(document.documentElement);
        const colour = (name: string) => {
          // In this shape it comes back, however it is written.
          pen.fillStyle = style.getPropertyValue(name);
          const hex = pen.fillStyle as string;
          return [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
        };
        const far = (a: ArrayLike<number>, b: ArrayLike<number>) =>
          Math.hypot(...[0, 1, 2].map((it) => a[it]! - b[it]!));
        const [ground, full] = [colour("--ground"), colour("--compute")];
        // The line of the row in which there is most: its events.
        const lines = Array.from({ length: Math.floor(height) }, (_, line) => {
          const { data } = pen.getImageData(0, Math.round(top) + line, image.width, 1);
          let sum = 0;
          for (let at = 0; at < data.length; at += 4) {
            sum += Math.min(far(data.subarray(at, at + 3), ground) / far(full, ground), 1);
          }
          return sum / image.width;
        });
        return lines.sort((a, b) => a - b)[Math.floor(lines.length / 2)]!;
      },
      { picture, top, height },
    );
    expect(ink).toBeGreaterThan(0.15);
    expect(ink).toBeLessThan(0.45);
    await page.context().close();
  },
);

test.each(["event=5", "range=20000000000-60000000000", "evidence=0.0", "notes=30000000000~a"])(
  "leaving the timeline throws nothing (%s)",
  async (query) => {
    const { page, errors } = await timeline(`run=1&${query}`);
    const canvas = await pointAt(page, 0.5, 0.3);
    await page.mouse.move(canvas.x, canvas.y);
    for (const view of ["overview", "timeline", "ops"]) {
      await page.evaluate((it) => (location.hash = `${it}?run=1`), view);
      await settled(page);
    }
    expect(errors).toEqual([]);
    await page.context().close();
  },
);

test("panels can be resized, by pointer and by keys, and stay so", async () => {
  const { page } = await timeline("run=1&event=5");
  const panel = page.getByRole("complementary", { name: "Selected event" });
  await panel.waitFor();
  const width = async () => (await panel.boundingBox())!.width;
  const before = await width();
  const edge = page.getByRole("separator", { name: "Width of the panel" });
  const { x, y, width: thick } = (await edge.boundingBox())!;
  await page.mouse.move(x + thick / 2, y + 200);
  await page.mouse.down();
  await page.mouse.move(x + thick / 2 - 120, y + 200, { steps: 4 });
  await page.mouse.up();
  expect(await width()).toBeCloseTo(before + 120, 0);
  await edge.focus();
  await page.keyboard.press("ArrowRight");
  expect(await width()).toBeCloseTo(before + 104, 0);
  const names = page.getByRole("separator", { name: "Width of the names" });
  await names.focus();
  const stage = async () => (await page.locator(".tl-canvas").boundingBox())!.x;
  const left = await stage();
  await page.keyboard.press("ArrowRight");
  expect(await stage()).toBeCloseTo(left + 16, 0);
  expect(await violations(page)).toEqual([]);
  await page.reload();
  await panel.waitFor();
  expect(await width()).toBeCloseTo(before + 104, 0);
  expect(await stage()).toBeCloseTo(left + 16, 0);
  await page.context().close();
});

test("a pinned track stays on top, also in a link", async () => {
  const { page } = await timeline("run=1");
  const pin = page.getByRole("button", { name: /^Pin to the top/ }).nth(1);
  const name = (await pin.getAttribute("aria-label"))!.replace("Pin to the top: ", "");
  await pin.click();
  await inAddress(page, "pin=");
  const { page: other } = await open(browser, handedOver(page, inject("url")));
  await other.getByRole("application").waitFor();
  await settled(other);
  expect(await other.locator(".tl-pinned .tl-name").allInnerTexts()).toEqual([name]);
  await page.context().close();
  await other.context().close();
});

test("notes live in the link", async () => {
  const { page, errors } = await timeline("run=1&from=20000000000&to=60000000000");
  const { x, y } = await pointAt(page, 0.5, 0.4);
  await page.getByRole("application").focus();
  await page.mouse.move(x, y);
  await page.keyboard.press("k");
  await page.getByLabel("Note at this time").fill("slow | here ~ 100%");
  await page.keyboard.press("Enter");
  await inAddress(page, "slow");
  expect(await violations(page)).toEqual([]);
  const { page: other } = await open(browser, handedOver(page, inject("url")));
  const note = other.getByRole("button", { name: "slow | here ~ 100%" });
  await note.waitFor();
  expect((await note.boundingBox())!.x).toBeCloseTo(x, -1);
  await note.click();
  await other.getByRole("button", { name: "Remove" }).click();
  await other.waitForURL((it) => !it.hash.includes("notes="));
  expect(errors).toEqual([]);
  await page.context().close();
  await other.context().close();
});
