// The store reads the address through the router, so there must be one.
import { expect, test, vi } from "vitest";
import type { TableOf } from "../../src/data/types";

vi.stubGlobal("location", { hash: "" });
vi.stubGlobal("addEventListener", () => {});
vi.stubGlobal("history", { replaceState: () => {} });
const { localMean } = await import("../../src/data/local-mean");

const table: TableOf<"step_time"> = {
  name: "step_time",
  doc: "",
  columns: ["host", "step", "device", "dur_ps", "input_ps", "compute_ps", "counts"].map((name) => ({
    name,
    kind: "int",
    doc: "",
  })),
  total: 4,
  rows: [
    ["a", 0, "cpu", 9e9, 9e9, 0, false],
    ["a", 1, "cpu", 2e9, 1e9, 1e9, true],
    ["a", 2, "cpu", 4e9, 1e9, 3e9, true],
    ["b", 1, "cpu", 8e9, 8e9, 0, true],
  ],
};

const mean = (query: string) => localMean(table, new URLSearchParams(query));

test("an exported file has the mean of the steps that are chosen and count", () => {
  const { n_steps, mean_ms, breakdown } = mean("host=a&first=0&last=2");
  expect([n_steps, mean_ms]).toEqual([2, 3]);
  const of = (category: string) => breakdown.find((it) => it.category === category);
  expect(of("input")).toMatchObject({ ms_per_step: 1 });
  expect(of("compute")!.share).toBeCloseTo(2 / 3);
  expect(mean("").n_steps).toBe(3);
});

test("without such steps there is no mean", () => {
  expect(mean("host=a&first=7")).toEqual({ n_steps: 0, mean_ms: null, breakdown: [] });
});
