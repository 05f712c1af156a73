import { describe, expect, test } from "vitest";
import type { Timeline } from "../../src/data/types";
import { Block } from "../../src/timeline/block";
import { LocalTiles, type EventColumns } from "../../src/timeline/local-tiles";
import { decode } from "../../src/timeline/server-tiles";
import { NO_NAME, OPEN_END, tileLength } from "../../src/timeline/tiles";

const TIMELINE: Timeline = {
  start_ps: 0,
  end_ps: 1 << 20,
  cells: 1024,
  kinds: [
    { name: "kernel", category: "compute" },
    { name: "step", category: null },
  ],
  tracks: [],
  steps: [{ host: 0, step: 3, start_ps: 0, dur_ps: 1 << 20, counts: true }],
  typical_step: 0,
};

/** The same numbers every time. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Events that follow one another on each of three lanes of two tracks, many without length. */
function events(n: number, seed: number): EventColumns {
  const next = random(seed);
  const rows: { track: number; lane: number; start: number; dur: number }[] = [];
  for (const track of [4, 9]) {
    for (let lane = 0; lane < 3; lane += 1) {
      let at = Math.floor(next() * 1000);
      for (let i = 0; i < n; i += 1) {
        const dur = next() < 0.2 ? 0 : Math.floor(2 ** (next() * 14));
        rows.push({ track, lane, start: at, dur });
        at += dur + (next() < 0.5 ? 0 : Math.floor(next() * 3000));
      }
    }
  }
  rows.sort((a, b) => a.track - b.track || a.start - b.start || a.lane - b.lane);
  return {
    start: rows.map((it) => it.start),
    dur: rows.map((it) => it.dur),
    track: rows.map((it) => it.track),
    lane: rows.map((it) => it.lane),
    kind: rows.map(() => 0),
    name: rows.map((_, at) => at % 2),
    parent: rows.map(() => -1),
    names: ["one", "Two"],
  };
}

function sums(of: EventColumns, track: number): { count: number; total: number } {
  const rows = Array.from(of.track, (it, row) => (it === track ? row : -1)).filter((it) => it >= 0);
  return { count: rows.length, total: rows.reduce((sum, it) => sum + of.dur[it]!, 0) };
}

describe("tiles cut from raw events", () => {
  test.each([1, 2, 3])("add up to the events at every level (seed %i)", async (seed) => {
    const columns = events(200, seed);
    const source = new LocalTiles(TIMELINE, columns);
    const end = Math.max(...Array.from(columns.start, (it, row) => it + columns.dur[row]!));
    for (let level = 10; level <= 24; level += 1) {
      const found = new Map([
        [4, { count: 0, total: 0 }],
        [9, { count: 0, total: 0 }],
      ]);
      for (let tile = 0; tile <= Math.floor(end / tileLength(level)); tile += 1) {
        for (const it of (await source.tile(level, tile, [4, 9, 4])).tracks) {
          const sum = found.get(it.track)!;
          it.count.forEach((n) => (sum.count += n));
          it.total.forEach((ps) => (sum.total += ps));
          for (let at = 1; at < it.left.length; at += 1) {
            const sorted =
              it.lane[at - 1]! < it.lane[at]! ||
              (it.lane[at - 1] === it.lane[at] && it.left[at - 1]! <= it.left[at]!);
            expect(sorted).toBe(true);
          }
        }
      }
      expect(found.get(4)).toEqual(sums(columns, 4));
      expect(found.get(9)).toEqual(sums(columns, 9));
    }
  });

  test("an event reaches into later tiles without being counted again", async () => {
    const source = new LocalTiles(TIMELINE, {
      ...{ start: [100], dur: [3000], track: [1], lane: [0], kind: [0], name: [0] },
      ...{ parent: [-1], names: ["long"] },
    });
    const tiles = await Promise.all([0, 1, 2, 3, 4].map((it) => source.tile(10, it, [1])));
    const spans = tiles.map((it) => it.tracks[0]!);
    expect(spans.map((it) => it.left.length)).toEqual([1, 1, 1, 1, 0]);
    expect(spans.slice(0, 4).map((it) => it.count[0])).toEqual([1, 0, 0, 0]);
    expect(spans.slice(0, 4).map((it) => it.total[0])).toEqual([3000, 0, 0, 0]);
    expect(spans[0]!.right[0]).toBe(OPEN_END);
    expect(spans[1]!.left[0]).toBe(0);
    expect(spans[3]!.right[0]).toBe((3100 - 3072) * 2 ** 22);
    expect(spans[2]!.names[spans[2]!.name[0]!]).toBe("long");
  });

  test("short events of a cell are merged, the longest stands for them", async () => {
    const source = new LocalTiles(TIMELINE, {
      ...{ start: [0, 3, 9, 20], dur: [2, 5, 1, 200], track: [1, 1, 1, 1], lane: [0, 0, 0, 0] },
      ...{ kind: [0, 1, 0, 0], name: [0, 0, 0, 0], parent: [-1, -1, -1, -1], names: ["a"] },
    });
    // Cells of 16 ps.
    const spans = (await source.tile(14, 0, [1])).tracks[0]!;
    expect([...spans.count]).toEqual([3, 1]);
    expect([...spans.total]).toEqual([8, 200]);
    expect([...spans.event]).toEqual([1, 3]);
    expect([...spans.kind]).toEqual([1, 0]);
    expect([...spans.name]).toEqual([NO_NAME, NO_NAME]);
    expect(spans.right[0]! / 2 ** 18).toBe(10);
  });

  test("a range counts the part inside, and time of one's own once", async () => {
    const source = new LocalTiles(TIMELINE, {
      ...{ start: [0, 20, 90], dur: [100, 30, 0], track: [1, 1, 1], lane: [0, 1, 1] },
      ...{ kind: [0, 0, 0], name: [0, 1, 1], parent: [-1, 0, 0], names: ["a", "b"] },
    });
    const { rows, count } = await source.range({ from: 10, to: 40 }, null);
    expect(count).toBe(2);
    const times = rows.map((it) => [it.name, it.count, it.total_ps, it.self_ps]);
    expect(times).toEqual([
      ["b", 1, 20, 20],
      ["a", 1, 30, 10],
    ]);
  });

  test("a search ignores case and counts beyond its limit", async () => {
    const columns = events(50, 7);
    const found = await new LocalTiles(TIMELINE, columns).search("tWo", 10);
    expect(found.total).toBe(150);
    expect(found.hits).toHaveLength(10);
    const starts = found.hits.map((it) => it.start_ps);
    expect(starts).toEqual(starts.toSorted((a, b) => a - b));
    expect(found.names.map((it) => it.name)).toEqual(["Two"]);
  });
});

describe("a tile from the server", () => {
  /** Two tracks, of two spans and of none, as docs/api.md has it. */
  function made(): ArrayBuffer {
    const text = new TextEncoder().encode("größe");
    const bytes = new Uint8Array(24 + 8 + 72 + 8 + 4 + text.length);
    const view = new DataView(bytes.buffer);
    const u32 = (at: number, value: number) => view.setUint32(at, value, true);
    u32(0, 0x31424f54);
    view.setUint8(4, 33);
    view.setBigInt64(8, -2n, true);
    u32(16, 2);
    u32(20, 1);
    u32(24, 7);
    u32(28, 2);
    let at = 32;
    for (const it of [5000, 0]) view.setFloat64((at += 8) - 8, it, true);
    // left, right, count, event, name
    for (const it of [0, 2 ** 31, 2 ** 30, OPEN_END, 3, 0, 11, 12, NO_NAME, 0])
      u32((at += 4) - 4, it);
    for (const it of [0, 1, 4, 5]) view.setUint8((at += 1) - 1, it);
    at += 4;
    u32(at, 8);
    u32(at + 4, 0);
    u32(at + 8, text.length);
    bytes.set(text, at + 12);
    return bytes.buffer;
  }

  test("is read column by column", () => {
    const { level, tile, tracks } = decode(made());
    expect([level, tile]).toEqual([33, -2]);
    expect(tracks.map((it) => [it.track, it.left.length])).toEqual([
      [7, 2],
      [8, 0],
    ]);
    const [of] = tracks;
    expect([...of!.total]).toEqual([5000, 0]);
    expect([...of!.left]).toEqual([0, 2 ** 31]);
    expect([...of!.right]).toEqual([2 ** 30, OPEN_END]);
    expect([...of!.count]).toEqual([3, 0]);
    expect([...of!.event]).toEqual([11, 12]);
    expect([...of!.name]).toEqual([NO_NAME, 0]);
    expect([...of!.lane]).toEqual([0, 1]);
    expect([...of!.kind]).toEqual([4, 5]);
    expect(of!.names).toEqual(["größe"]);
  });

  test("is refused where it is none", () => {
    expect(() => decode(new ArrayBuffer(24))).toThrow("not a tile");
    expect(() => decode(new ArrayBuffer(3))).toThrow("not a tile");
  });

  test("can be pointed at", () => {
    const block = new Block(33, -2, decode(made()).tracks[0]!);
    const begin = -2 * 2 ** 33;
    expect(block.find(0, begin + 10, 0)).toBe(0);
    expect(block.find(0, begin + 2 ** 31 + 50, 0)).toBe(-1);
    expect(block.find(0, begin + 2 ** 31 + 50, 100)).toBe(0);
    expect(block.find(1, begin + 2 ** 32 - 50, 100)).toBe(1);
    expect(block.find(2, begin, 1e9)).toBe(-1);
    expect(block.end(1)).toBe(begin + 2 ** 33);
  });
});
