// Drives one tool in headless Chromium for bench/page/run: a command a line on stdin, an answer a line on stdout,
// both JSON.
//
//   {"do": "blank"}                        an empty tab: what the browser takes alone
//   {"do": "open", "tool", "url"}          goes there; answers when the tool has drawn what is visible
//   {"do": "prepare", "tool"}              shows the whole trace, every track of it
//   {"do": "move", "tool"}                 the scripted path; answers with the frames' times
//   {"do": "picture", "file"}
//   {"do": "close"}
//
// An answer has "ok": false and "why" where it did not work.
import { createInterface } from "node:readline";
import { createHash } from "node:crypto";
import { chromium } from "../../web/node_modules/playwright-core/index.mjs";

const WIDTH = 1280;
const HEIGHT = 800;
// In the middle of every tool's tracks.
const POINTER = { x: 870, y: 400 };
const STEPS = 20;
const STEP_MS = 150;

const FLAGS = [
  "--no-sandbox",
  "--no-first-run",
  "--disable-quic",
  "--disable-sync",
  "--disable-background-networking",
  "--disable-component-update",
  // What a tool wants from the internet fails at once, as on a machine without any.
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
  // Without a GPU Chromium paints 2D canvases by itself and only WebGL in emulation. The flags that emulate a GPU for
  // everything (--use-angle=swiftshader) make 2D canvases twenty times slower: neither peer would be seen at its best.
  "--enable-unsafe-swiftshader",
];

// How each tool says that it has drawn, and how much time it shows; all of that runs inside the page. And how it is
// moved: a step zooms by about 1.33, twenty by 300.
const TOOLS = {
  ours: {
    drawn: () => window.__strobe?.timeline?.ready === true,
    quiet: () => window.__strobe.timeline.idle === true,
    // It opens on a typical step: the others show the whole trace, where the path begins.
    prepare: () => page.keyboard.press("0"),
    shown: () => (window.__strobe.timeline.window.to - window.__strobe.timeline.window.from) / 1e12,
    step: wheel({ zoom: 50, pan: 60 }),
  },
  perfetto: {
    // No longer loading, and no query of a track under way: what its progress bar shows.
    drawn: () => {
      const app = window.app;
      if (app?.trace && !app.isLoadingTrace) window.__loaded ??= Date.now();
      return (
        window.__loaded !== undefined && app.trace.engine.numRequestsPending === 0 && !window.raf.hasPendingRedraws
      );
    },
    quiet: () => window.app.trace.engine.numRequestsPending === 0 && !window.raf.hasPendingRedraws,
    failed: () => document.querySelector(".pf-modal-dialog")?.innerText,
    // It opens with every process collapsed to one row: expanded, it draws what the others draw.
    prepare: () => page.evaluate(() => window.app.commands.runCommand("dev.perfetto.ExpandAllGroups")),
    events: async () => {
      const found = await window.app.trace.engine.query("select count(*) as n from slice");
      return Number(found.firstRow({ n: 0 }).n);
    },
    shown: () => Number(window.app.trace.timeline.visibleWindow.duration) / 1e9,
    step: wheel({ zoom: 100, pan: 60 }),
  },
  xprof: {
    drawn: () => {
      const viewer = document.querySelector("iframe")?.contentDocument?.querySelector("tf-trace-viewer");
      return viewer?._isInitialLoad === false && !viewer._isLoading && viewer._model !== undefined;
    },
    quiet: () => !document.querySelector("iframe").contentDocument.querySelector("tf-trace-viewer")._isLoading,
    // Its keys go to its frame only after a click; in the mode that it opens with, a click selects nothing.
    prepare: () => page.mouse.click(POINTER.x, POINTER.y),
    // What it holds, with the lines that it derives; of a large trace a choice by length.
    events: () =>
      document.querySelector("iframe").contentDocument.querySelector("tf-trace-viewer")._loadedTraceEvents.size,
    shown: () => {
      const viewer = document.querySelector("iframe").contentDocument.querySelector("tf-trace-viewer");
      return (viewer.currentViewportRange.max - viewer.currentViewportRange.min) / 1e3;
    },
    // A key zooms by 1.5: 14 of them in 20 steps.
    step: async (direction, nth) => {
      if (direction === "pan" || nth % 10 < 7) await page.keyboard.press({ in: "w", pan: "d", out: "s" }[direction]);
      await page.waitForTimeout(STEP_MS);
    },
  },
};

/** A step by the wheel, in two turns: with ctrl it zooms to the pointer, sideways it moves. */
function wheel({ zoom, pan }) {
  return async (direction) => {
    if (direction !== "pan") await page.keyboard.down("Control");
    for (let turn = 0; turn < 2; turn++) {
      if (direction === "pan") await page.mouse.wheel(pan, 0);
      else await page.mouse.wheel(0, direction === "in" ? -zoom : zoom);
      await page.waitForTimeout(STEP_MS / 2);
    }
    if (direction !== "pan") await page.keyboard.up("Control");
  };
}

let browser;
let page;
let crashed;

const commands = {
  async blank() {
    browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS });
    page = await browser.newPage({ viewport: { width: WIDTH, height: HEIGHT } });
    page.on("crash", () => (crashed = "the tab crashed"));
    browser.on("disconnected", () => (crashed = "the browser died"));
    await page.goto("about:blank");
    await page.waitForTimeout(1000);
    return {};
  },

  async open({ tool, url }) {
    await page.goto(url, { waitUntil: "commit" });
    const began = Date.now();
    const drawn = await until(tool, "drawn", 200);
    await frames(2);
    const loaded = await page.evaluate(() => window.__loaded);
    const events = TOOLS[tool].events && (await page.evaluate(TOOLS[tool].events));
    return { drawn_at: drawn / 1000, loaded_at: (loaded ?? drawn) / 1000, committed_at: began / 1000, events };
  },

  async prepare({ tool }) {
    await page.mouse.move(POINTER.x, POINTER.y);
    const began = Date.now();
    await TOOLS[tool].prepare();
    await frames(2);
    return { prepare_ms: (await until(tool, "quiet", 500)) - began };
  },

  async move({ tool }) {
    const phases = {};
    const seen = [await look(tool)];
    for (const direction of ["in", "pan", "out"]) {
      await record();
      for (let nth = 0; nth < STEPS; nth++) await TOOLS[tool].step(direction, nth);
      const ended = Date.now();
      const times = await page.evaluate(() => window.__frames.stop());
      const quiet = await until(tool, "quiet", 200);
      phases[direction] = { frame_ms: times, settle_ms: Math.max(0, quiet - ended) };
      seen.push(await look(tool));
    }
    for (let it = 1; it < seen.length; it++) {
      if (seen[it].picture === seen[it - 1].picture) throw new Error("the view did not move");
    }
    return { phases, shown_s: seen.map((it) => it.shown) };
  },

  async picture({ file }) {
    await page.screenshot({ path: file });
    return {};
  },

  async close() {
    await browser?.close();
    return {};
  },
};

/** Waits for a state that lasts: the moment it began, in Unix milliseconds. */
async function until(tool, state, lasts) {
  let since;
  for (;;) {
    if (crashed) throw new Error(crashed);
    const { yes, failed, now } = await page.evaluate(
      `(() => { const yes = Boolean((${TOOLS[tool][state]})()); ` +
        `const failed = (${TOOLS[tool].failed ?? (() => undefined)})(); return { yes, failed, now: Date.now() }; })()`,
    );
    if (failed) throw new Error(failed.replaceAll(/\s+/g, " ").slice(0, 300));
    since = yes ? (since ?? now) : undefined;
    if (since !== undefined && now - since >= lasts) return since;
    await new Promise((done) => setTimeout(done, 20));
  }
}

async function frames(count) {
  await page.evaluate(async (count) => {
    for (let it = 0; it < count; it++) await new Promise(requestAnimationFrame);
  }, count);
}

/** Writes down when each frame begins, from now on. */
async function record() {
  await page.evaluate(() => {
    const begins = [];
    let running = true;
    const tick = (at) => {
      begins.push(at);
      if (running) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
    window.__frames = {
      stop: () => {
        running = false;
        return begins.slice(1).map((at, it) => at - begins[it]);
      },
    };
  });
}

async function look(tool) {
  const shown = await page.evaluate(TOOLS[tool].shown);
  const picture = createHash("sha1")
    .update(await page.screenshot())
    .digest("hex");
  return { shown, picture };
}

// Whoever started this is gone: so is the browser, even in the middle of a command.
process.stdin.on("end", () => process.exit(0));

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  let answer;
  try {
    answer = { ok: true, ...(await commands[command.do](command)) };
  } catch (error) {
    answer = { ok: false, why: crashed ?? error.message.split("\n")[0] };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
  if (command.do === "close") break;
}
process.exit(0);
