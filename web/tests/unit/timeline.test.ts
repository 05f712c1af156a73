import { describe, expect, test } from "vitest";
import type { Timeline, Track } from "../../src/data/types";
import { Block, LIT, lightsOf, SPAN_WORDS } from "../../src/timeline/block";
import { placed } from "../../src/timeline/hover";
import { notesFrom, notesText } from "../../src/timeline/notes";
import { LocalTiles } from "../../src/timeline/local-tiles";
import { TileCache } from "../../src/timeline/tile-cache";
import type { TileSource, TrackTile } from "../../src/timeline/tiles";
import { firstRowAt, grouped, groupsAround, rowsOf, titlesOf } from "../../src/timeline/tracks";
import { roundTime, Viewport } from "../../src/timeline/viewport";

function track(id: number, parent: number | null, kind: string, about: Partial<Track> = {}): Track {
  const isGroup = ["host", "process", "device"].includes(kind);
  const times = { first_ps: 0, last_ps: 1e9 };
  const name = `${kind} ${id}`;
  const n_events = isGroup ? 0 : 10;
  return { id, parent, kind, name, n_events, lanes: 1, ...times, driving: false, ...about };
}

const TRACKS: Track[] = [
  track(0, null, "host"),
  track(1, 0, "process"),
  ...Array.from({ length: 20 }, (_, at) => track(10 + at, 1, "thread", { n_events: at + 1 })),
  track(2, 1, "thread", { driving: true, lanes: 12, name: "main" }),
  track(40, 0, "device"),
  track(41, 40, "stream", { lanes: 3 }),
  track(42, 40, "steps"),
  track(50, null, "counter", { n_events: 0, counter: { n: 3, min: 0, max: 5 } }),
];
const TIMELINE: Timeline = {
  ...{ start_ps: 0, end_ps: 1e9, cells: 1024, kinds: [], tracks: TRACKS },
  ...{ steps: [], typical_step: null },
};
const NO_CHOICE = {
  ...{ toggled: new Set<string>(), resized: new Set<number>(), pinned: [] },
  ...{ filter: "", sort: "default" as const },
};

describe("rows", () => {
  const tree = grouped(TIMELINE);
  const keys = (choices: Partial<Parameters<typeof rowsOf>[2]> = {}) =>
    rowsOf(tree, TRACKS, { ...NO_CHOICE, ...choices }).rows.map((it) => it.key);

  test("the driving thread is on top, streams under it, the rest folded", () => {
    expect(keys()).toEqual([
      "track-2",
      "device-40",
      "track-41",
      "side-40",
      "process-1",
      "counters",
    ]);
  });

  test("every track with content is reachable once all is open", () => {
    const toggled = new Set(["process-1", "side-40", "counters"]);
    const shown = keys({ toggled }).filter((it) => it.startsWith("track-"));
    const content = TRACKS.filter((it) => it.n_events > 0 || it.counter);
    expect(shown.toSorted()).toEqual(content.map((it) => `track-${it.id}`).toSorted());
  });

  test("a filter opens what it finds", () => {
    expect(keys({ filter: "thread 11" })).toEqual(["process-1", "track-11"]);
    expect(keys({ filter: "nothing like it" })).toEqual([]);
  });

  test("sorted by events, the busiest comes first", () => {
    const sorted = keys({ sort: "events", toggled: new Set(["process-1"]) });
    expect(sorted.slice(0, 2)).toEqual(["process-1", "track-29"]);
  });

  test("a pinned track lies above what scrolls; rows touch", () => {
    const rows = rowsOf(tree, TRACKS, { ...NO_CHOICE, pinned: [41, 999] });
    expect(rows.pinned.map((it) => it.track?.id)).toEqual([41]);
    let top = 0;
    for (const it of rows.rows) {
      expect(it.top).toBe(top);
      top += it.height;
    }
    expect(rows.height).toBe(top);
    expect(firstRowAt(rows.rows, 0)).toBe(0);
    expect(firstRowAt(rows.rows, rows.rows[1]!.top)).toBe(1);
    expect(firstRowAt(rows.rows, top)).toBe(rows.rows.length);
  });

  test("what hides a track is told", () => {
    expect(groupsAround(tree, 42).map((it) => it.key)).toEqual(["device-40", "side-40"]);
    expect(groupsAround(tree, 2)).toEqual([]);
  });
});

describe("names of tracks", () => {
  const named = (...names: string[]) =>
    [...titlesOf(names.map((name, id) => track(id, 9, "thread", { name }))).values()].sort();

  test("threads of one pool are told apart, without their addresses", () => {
    expect(named("tf_Compute/-823456789", "tf_Compute/1234567", "python")).toEqual([
      "python",
      "tf_Compute #1",
      "tf_Compute #2",
    ]);
    expect(named("tf_Compute/1234567")).toEqual(["tf_Compute"]);
    expect(named("worker 1", "worker 2")).toEqual(["worker 1", "worker 2"]);
    expect(named("worker", "worker", "")).toEqual(["track 2", "worker #1", "worker #2"]);
  });
  test("those of other processes are others", () => {
    const two = [3, 4].map((parent, id) => track(id, parent, "thread", { name: "main" }));
    expect([...titlesOf(two).values()]).toEqual(["main", "main"]);
  });
});

describe("notes", () => {
  test("come back from the address as they were", () => {
    const notes = [
      { time: 123, text: "slow | here ~ \\p and \\" },
      { time: -7, text: "" },
    ];
    expect(notesFrom(notesText(notes))).toEqual(notes);
    expect(notesText([])).toBe("");
  });
  test("what is none is left out, and there is an end to them", () => {
    expect(notesFrom("x~1|~y|5~ok|1e99~z|")).toEqual([{ time: 5, text: "ok" }]);
    expect(notesFrom(undefined)).toEqual([]);
    const many = Array.from({ length: 500 }, (_, time) => ({ time, text: "n".repeat(500) }));
    const kept = notesFrom(notesText(many));
    expect(kept.length).toBeLessThan(500);
    expect(kept[0]!.text.length).toBeLessThan(500);
  });
});

describe("the box beside the pointer", () => {
  const room = { width: 800, height: 400 };
  const box = { width: 300, height: 120 };
  test.each([
    [10, 10],
    [790, 390],
    [400, 399],
    [0, 395],
  ])("at %i, %i it is wholly inside", (x, y) => {
    const at = placed({ x, y }, box, room);
    expect(at.x).toBeGreaterThanOrEqual(0);
    expect(at.y).toBeGreaterThanOrEqual(0);
    expect(at.x + box.width).toBeLessThanOrEqual(room.width);
    expect(at.y + box.height).toBeLessThanOrEqual(room.height);
  });
});

describe("what is lit", () => {
  // Two lanes, one span in each that stands for ten events of the first half of the tile.
  const tile: TrackTile = {
    track: 7,
    left: Uint32Array.of(0, 0),
    right: Uint32Array.of(2 ** 31, 2 ** 31),
    lane: Uint8Array.of(0, 1),
    kind: Uint8Array.of(0, 0),
    count: Uint32Array.of(10, 10),
    total: Float64Array.of(1, 1),
    event: Uint32Array.of(1, 20),
    name: Uint32Array.of(0, 0),
    names: [""],
  };
  const block = new Block(0, 0, tile);
  const lit = (places: Parameters<typeof lightsOf>[0]) => {
    const words = block.words(lightsOf(places, 1));
    return [0, 1].map((at) => (words[at * SPAN_WORDS + 2]! >>> 24) & LIT);
  };

  test("what a lit event is merged into is lit, in its lane alone", () => {
    const inside = block.length / 4;
    expect(lit([{ event: 5, track: 7, lane: 1, start_ps: inside }])).toEqual([0, 1]);
    expect(lit([{ event: 5, track: 7, start_ps: inside }])).toEqual([1, 1]);
    expect(lit([{ event: 5, track: 8, lane: 1, start_ps: inside }])).toEqual([0, 0]);
    expect(lit([{ event: 5, track: 7, lane: 1, start_ps: block.length * 0.75 }])).toEqual([0, 0]);
    expect(lit([{ event: 20, track: 7, lane: 1, start_ps: 0 }])).toEqual([0, 1]);
    expect(lit([])).toEqual([0, 0]);
  });
});

describe("the window", () => {
  const view = () => {
    const it = new Viewport();
    it.within({ from: 0, to: 1e12 });
    it.width = 1000;
    it.set(2e11, 3e11);
    return it;
  };

  test("zoom keeps what is under the pointer", () => {
    const it = view();
    const time = it.time(300);
    it.zoom(7, 300);
    expect(it.x(time)).toBeCloseTo(300, 6);
    expect(it.span).toBeCloseTo(1e11 / 7, 0);
  });

  test("it stays near the trace and is never longer than it by much", () => {
    const it = view();
    for (let n = 0; n < 100; n += 1) it.pan(900);
    expect(it.from).toBeLessThan(1e12);
    it.zoom(1e-9, 500);
    expect(it.span).toBeLessThanOrEqual(1.2e12);
    it.zoom(1e15, 500);
    expect(it.span).toBe(2000);
    expect(it.level).toBe(11);
  });

  test("a cell is at most a pixel, and more than half of one", () => {
    const it = view();
    for (const span of [1e5, 3.3e7, 1e9, 7.7e11]) {
      it.set(1e10, 1e10 + span);
      const pixels = 2 ** (it.level - 10) * it.pixelsPerPs;
      expect(pixels).toBeLessThanOrEqual(1);
      expect(pixels).toBeGreaterThan(0.5);
    }
  });

  test("ticks are round", () => {
    expect([1, 3, 7, 80, 101].map(roundTime)).toEqual([1, 5, 10, 100, 200]);
  });
});

describe("the cache of tiles", () => {
  const need = { level: 20, from: 0, to: 4 * 2 ** 20, tracks: [track(1, null, "thread")] };
  const settled = () => new Promise((wake) => setTimeout(wake, 0));

  function watched() {
    const asked: { level: number; tile: number; signal: AbortSignal; answer: () => void }[] = [];
    const local = new LocalTiles(TIMELINE, {
      ...{ start: [5], dur: [9], track: [1], lane: [0], kind: [0], name: [0], parent: [-1] },
      names: ["a"],
    });
    const source = Object.assign(Object.create(local) as TileSource, {
      tile: (level: number, tile: number, tracks: number[], signal: AbortSignal) =>
        new Promise((resolve) => {
          asked.push({
            ...{ level, tile, signal },
            answer: () => resolve(local.tile(level, tile, tracks)),
          });
        }),
    });
    const none = () => {};
    const cache = new TileCache(source, { from: 0, to: 1e9 }, none, none, none);
    return { cache, asked };
  }

  test("asks for the whole trace, then the middle of the window, few at once", () => {
    const { cache, asked } = watched();
    cache.update(need);
    expect(asked.map((it) => [it.level, it.tile])).toEqual([
      [30, 0],
      [20, 1],
      [20, 2],
      [20, 0],
      [20, 3],
      [20, 4],
    ]);
    cache.update(need);
    expect(asked).toHaveLength(6);
  });

  test("stops what is out of view and keeps what comes", async () => {
    const { cache, asked } = watched();
    cache.update(need);
    asked[0]!.answer();
    await settled();
    expect(cache.block(30, 0, 1)?.n).toBe(1);
    cache.update({ ...need, from: 500 * 2 ** 20, to: 501 * 2 ** 20 });
    expect(asked.slice(1, 6).every((it) => it.signal.aborted)).toBe(true);
    expect(cache.block(20, 1, 1)).toBeUndefined();
  });

  test("asks for the neighbourhood only once nothing is missing", async () => {
    const { cache, asked } = watched();
    cache.update(need);
    for (let at = 0; at < asked.length && at < 6; at += 1) asked[at]!.answer();
    await settled();
    const after = asked.slice(6).map((it) => it.level);
    expect(after.length).toBeGreaterThan(0);
    expect(after.every((it) => [19, 20, 21].includes(it))).toBe(true);
  });
});
