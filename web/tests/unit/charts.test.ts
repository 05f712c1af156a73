import { describe, expect, test } from "vitest";
import { bytesTicks, gain, number, percentTicks, sentence, timeTicks } from "../../src/format";
import { groupsOf, shortName, unitOf } from "../../src/parts/counters";
import type { Scalar } from "../../src/data/tables";
import { byGroup, smoothed } from "../../src/parts/smooth";
import { aligned } from "../../src/parts/stack";

describe("numbers on axes", () => {
  test("one unit for all ticks, said at the largest", () => {
    expect(timeTicks([0, 5e9, 1e10])).toEqual(["0", "5", "10 ms"]);
    expect(bytesTicks([0, 500_000, 1_000_000])).toEqual(["0", "0.5", "1 MB"]);
    expect(percentTicks([0, 0.5, 1])).toEqual(["0", "50", "100%"]);
  });
  test("an axis that lies before zero keeps its unit", () => {
    expect(timeTicks([-2e12, -1e12, 0])).toEqual(["-2", "-1", "0 s"]);
  });
  test("a gain is a range with the digits of the terminal", () => {
    expect(gain(1.148, 2.554)).toBe("1.15–2.6×");
    expect(gain(33.9, 41.2)).toBe("34–41×");
    expect(gain(1.501, 1.499)).toBe("1.50×");
    expect(gain(null, 2)).toBe("");
  });
  test("numbers that are not whole have three digits", () => {
    expect(number(1234)).toBe("1,234");
    expect(number(0.123456)).toBe("0.123");
    expect(number(0.0000123)).toBe("1.230e-5");
    expect(number(null)).toBe("–");
  });
  test("a name keeps its spelling at the beginning of a sentence", () => {
    expect(sentence("steps wait for input")).toBe("Steps wait for input.");
    expect(sentence("cuStreamSynchronize: 1.0 a step")).toBe("cuStreamSynchronize: 1.0 a step.");
    expect(sentence("model/dense holds it")).toBe("model/dense holds it.");
  });
});

describe("stacked values", () => {
  test("the top is drawn first, so that each covers what is below it", () => {
    const parts = [{ values: [1, 2] }, { values: [10, null] }, { values: [100, 200] }];
    expect(aligned([0, 1], parts, true)).toEqual([
      [0, 1],
      [111, 202],
      [11, 2],
      [1, 2],
    ]);
  });
  test("beside one another they stay as they are", () => {
    expect(aligned([0], [{ values: [null] }], false)).toEqual([[0], [null]]);
  });
});

describe("samples", () => {
  test("GPUs come first, cores are alike, and nothing is lost", () => {
    const names = [
      "cpu/core 1",
      "cpu/all",
      "cpu/core 0",
      "gpu 0/busy",
      "gpu 0/memory",
      "odd/thing",
    ];
    const groups = groupsOf(names);
    expect(groups.map((it) => it.title)).toEqual([
      "GPU 0, busy",
      "GPU 0, memory",
      "CPU, of all cores",
      "Each core",
      "odd/thing",
    ]);
    expect(groups.flatMap((it) => it.counters).sort()).toEqual([...names].sort());
    expect(groups.find((it) => it.title === "Each core")?.alike).toBe(true);
  });
  test("units follow from the name", () => {
    expect(unitOf("cpu/all").name).toBe("share");
    expect(unitOf("cpu/process").name).toBe("cores");
    expect(unitOf("memory/major_faults").name).toBe("1/s");
    expect(unitOf("memory/process").name).toBe("bytes");
    expect(unitOf("disk/read").text(1_500_000)).toBe("1.5 MB/s");
    expect(unitOf("gpu 3/memory").name).toBe("bytes");
    expect(unitOf("gpu 3/sm_clock").name).toBe("MHz");
    expect(unitOf("gpu 3/tensor_busy").name).toBe("share");
    expect(unitOf("gpu 3/nvlink_in").text(1_500_000)).toBe("1.5 MB/s");
    expect(shortName("pressure/own/io")).toBe("io");
  });
});

describe("curves of a log", () => {
  const row = (run: string, tag: string, step: number): Scalar => ({
    run,
    tag,
    step,
    time_ps: null,
    wall_unix_ns: null,
    value: 1,
    superseded: false,
  });
  test("are grouped by what stands before the slash", () => {
    const rows = [row("train", "loss/all", 0), row("val", "loss/all", 0), row("train", "lr", 0)];
    const groups = byGroup(rows);
    expect(groups.map(([group]) => group)).toEqual(["", "loss"]);
    expect(groups[1]![1][0]![1].map((it) => it.run)).toEqual(["train", "val"]);
  });
  test("smoothing starts at the first value and leaves gaps alone", () => {
    expect(smoothed([5, 5, 5], 0.9).map((it) => Number(it!.toFixed(9)))).toEqual([5, 5, 5]);
    expect(smoothed([1, null, Number.NaN], 0.5)).toEqual([1, null, null]);
    const values = [1, 2, 3];
    expect(smoothed(values, 0)).toBe(values);
    expect(smoothed([0, 1], 0.5)[1]).toBeCloseTo(2 / 3);
  });
});
