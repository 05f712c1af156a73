// Drives one tool in headless Chromium for bench/page/run: a command a line on stdin, an answer a line on stdout,
// both JSON.
//
//   {"do": "blank"}                        an empty tab; ours to be measured as the browser alone
//   {"do": "open", "tool", "url"}          goes there; answers when the tool has drawn what is visible
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
const STEPS = 20;
const STEP_MS = 150;

// No network: what a tool wants from the internet fails at once, as on a machine without any.
const FLAGS = [
  "--no-sandbox",
  "--no-first-run",
  "--disable-quic",
  "--disable-sync",
  "--disable-background-networking",
  "--disable-component-update",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
  "--use-gl=angle",
  "--use-angle=swiftshader",
  "--enable-unsafe-swiftshader",
];

// What each tool calls drawn, and how it says where it looks at. Everything here runs inside the page.
const TOOLS = {
  ours: {
    // The view waits for the run to be opened, then for the tiles it wants.
    drawn: () => window.__strobe?.timeline?.ready === true,
    quiet: () => window.__strobe.timeline.idle === true,
    window: () => window.__strobe.timeline.window(),
    hold: 50,
  },
  perfetto: {
    // The same as the bar that runs under its search box: loading, or a query of a track under way.
    drawn: () => {
      const app = window.app;
      if (app?.trace && !app.isLoadingTrace) window.__loaded ??= Date.now();
      return window.__loaded !== undefined && app.trace.engine.numRequestsPending === 0 && !window.raf.hasPendingRedraws;
    },
    quiet: () => window.app.trace.engine.numRequestsPending === 0 && !window.raf.hasPendingRedraws,
    failed: () => document.querySelector(".pf-modal-dialog")?.innerText,
    // It opens with every process collapsed to one row: expanded, it draws what the others draw.
    prepare: () => window.app.commands.runCommand("dev.perfetto.ExpandAllGroups"),
    events: async () => {
      const found = await window.app.trace.engine.query("select count(*) as n from slice");
      return Number(found.firstRow({ n: 0 }).n);
    },
    window: () => Number(window.app.trace.timeline.visibleWindow.duration),
    hold: 50,
  },
  xprof: {
    drawn: () => {
      const viewer = document.querySelector("iframe")?.contentDocument?.querySelector("tf-trace-viewer");
      return viewer?._isInitialLoad === false && !viewer._isLoading && viewer._model !== undefined;
    },
    quiet: () => !document.querySelector("iframe").contentDocument.querySelector("tf-trace-viewer")._isLoading,
    // What it holds, with the lines that it derives; of a large trace a choice by length.
    events: () =>
      document.querySelector("iframe").contentDocument.querySelector("tf-trace-viewer")._loadedTraceEvents.size,
    window: () => {
      const range = document.querySelector("iframe").contentDocument.querySelector("tf-trace-viewer")
        .currentViewportRange;
      return range.max - range.min;
    },
    hold: 50,
  },
};

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

  async move({ tool }) {
    const it = TOOLS[tool];
    if (it.prepare) await page.evaluate(it.prepare);
    await until(tool, "quiet", 500);
    // A click gives the keys to the timeline, in XProf's case inside its frame; on empty ground it selects nothing.
    await page.mouse.click(WIDTH * 0.7, HEIGHT * 0.9);
    await page.waitForTimeout(500);
    const phases = {};
    const seen = [await look(tool)];
    for (const [name, key] of [["in", "w"], ["pan", "d"], ["out", "s"]]) {
      await record();
      for (let step = 0; step < STEPS; step++) {
        await page.keyboard.down(key);
        await page.waitForTimeout(it.hold);
        await page.keyboard.up(key);
        await page.waitForTimeout(STEP_MS - it.hold);
      }
      const ended = Date.now();
      const times = await page.evaluate(() => window.__frames.stop());
      const quiet = await until(tool, "quiet", 200);
      phases[name] = { frame_ms: times, settle_ms: Math.max(0, quiet - ended) };
      seen.push(await look(tool));
    }
    for (let it = 1; it < seen.length; it++) {
      if (seen[it].picture === seen[it - 1].picture) throw new Error("the view did not move");
    }
    return { phases, windows: seen.map((it) => it.window) };
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
      // The page evaluates nothing from text (its policy forbids that); a function is passed as code of the driver.
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
  const window = await page.evaluate(`(${TOOLS[tool].window})()`);
  const picture = createHash("sha1").update(await page.screenshot()).digest("hex");
  return { window, picture };
}

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
