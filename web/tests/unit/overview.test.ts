// The router reads the address when it is loaded, so there must be one.
import { beforeAll, describe, expect, test, vi } from "vitest";
import type { Evidence, TableData } from "../../src/data/types";
import { blocks } from "../../src/parts/markdown";
import { inWords, isOfInput, stageName, type WhatIf } from "../../src/parts/what-if";
import { nested } from "../../src/parts/treemap";

let places: typeof import("../../src/parts/evidence");
let steps: typeof import("../../src/parts/steps");

beforeAll(async () => {
  vi.stubGlobal("location", { hash: "#overview?run=2" });
  vi.stubGlobal("addEventListener", () => {});
  places = await import("../../src/parts/evidence");
  steps = await import("../../src/parts/steps");
});

const evidence = (it: Partial<Evidence>): Evidence => ({
  text: "seen",
  table: null,
  rows: [],
  events: [],
  ...it,
});

const table = (name: string, columns: string[], rows: TableData["rows"]): TableData => ({
  name,
  doc: "",
  total: rows.length,
  columns: columns.map((it) => ({ name: it, kind: "int", doc: "" })),
  rows,
});

describe("where evidence is shown", () => {
  test("events on the timeline, rows in the view of their table, others by a query", () => {
    const at = (it: Partial<Evidence>) => places.placeOf(evidence(it))?.href;
    expect(at({ events: [7, 9] })).toBe("#timeline?run=2&lit=7%2C9");
    expect(at({ table: "input_stage", rows: [2] })).toBe("#input?run=2&table=input_stage&rows=2");
    expect(at({ table: "host_call", rows: [0] })).toBe(
      "#query?run=2&sql=select+*+from+host_call&rows=0",
    );
    expect(at({})).toBeUndefined();
  });
  test("events show more than rows, rows more than a table", () => {
    const list = [
      evidence({ table: "step_time" }),
      evidence({ table: "memory", rows: [0] }),
      evidence({ events: [1] }),
    ];
    expect(places.bestPlace(list)?.what).toBe("the events on the timeline");
    expect(places.bestPlace(list.slice(0, 2))?.href).toContain("#memory?");
    expect(places.bestPlace([])).toBeNull();
  });
  test("a row about a step opens that step of that host", () => {
    const all = table(
      "step",
      ["host", "step", "start_ps", "dur_ps"],
      [
        ["a", 0, 0, 10],
        ["b", 0, 5, 10],
      ],
    );
    const outliers = table("step_outlier", ["host", "step"], [["b", 0]]);
    const stepOf = steps.windowsOf(all, [outliers, null]);
    expect(stepOf("step_outlier", 0)).toEqual({ from: 5, to: 15 });
    expect(stepOf("step_outlier", 1)).toBeNull();
    expect(stepOf("op_time", 0)).toBeNull();
    const place = places.placeOf(evidence({ table: "step_outlier", rows: [0] }), stepOf);
    expect(place?.href).toBe("#timeline?run=2&from=5&to=15");
  });
  test("rows in the address are lit only in their own table", () => {
    const params = { table: "memory", rows: "0,3" };
    expect([...places.litRows(params, "memory")]).toEqual([0, 3]);
    expect(places.litRows(params, "memory_peak").size).toBe(0);
  });
});

describe("steps", () => {
  test("neighbours make one band", () => {
    const bands = steps.runsOf(
      [0, 1, 2, 3, 4],
      (it) => it !== 2 && it !== 4,
      (it) => it,
    );
    expect(bands).toEqual([
      { from: -0.5, to: 1.5 },
      { from: 2.5, to: 3.5 },
    ]);
  });
});

describe("what a rule is documented in", () => {
  test("headings, paragraphs, lists and code; nothing becomes HTML", () => {
    const source =
      "First line\ngoes on.\n\n ## Fix\n - one\n   more\n - two\n\n ```python\n a <b>\n ```\n<script>x</script>";
    expect(blocks(source)).toEqual([
      { kind: "paragraph", text: "First line goes on." },
      { kind: "heading", text: "Fix" },
      { kind: "list", items: ["one more", "two"] },
      { kind: "code", text: "a <b>" },
      { kind: "paragraph", text: "<script>x</script>" },
    ]);
  });
  test("code that is never closed is kept", () => {
    expect(blocks("```\nx = 1")).toEqual([{ kind: "code", text: "x = 1" }]);
  });
});

describe("what changes would give", () => {
  test("changes are named by the last stages", () => {
    expect(stageName("Iterator::Root::BatchV2::Map")).toBe("BatchV2 ▸ Map");
    expect(inWords("parallel Iterator::Root::BatchV2::Map")).toBe("BatchV2 ▸ Map in parallel");
    expect(inWords("without python in Iterator::Root::Map")).toBe("without python in Root ▸ Map");
    expect(inWords("without launch overhead")).toBe("without launch overhead");
  });
  test("those of the input are told from others", () => {
    const of = (change: string) => isOfInput({ change } as WhatIf);
    expect(of("prefetch")).toBe(true);
    expect(of("without Iterator::Root::Map")).toBe(true);
    expect(of("without python in Iterator::Root::Map")).toBe(true);
    expect(of("without python")).toBe(false);
    expect(of("kernels of model/dense × 0.5")).toBe(false);
  });
});

describe("areas", () => {
  test("deep scopes become part of the names inside", () => {
    const paths = [
      ["m", "l0", "a", "d"],
      ["m", "l0", "b"],
      ["m", "l1"],
    ];
    const tree = nested(paths.map((path) => area(path, "x")));
    const inner = tree.children![0]!.children![0]!;
    expect(tree.children![0]!.name).toBe("m");
    expect(inner.name).toBe("l0");
    expect(inner.children!.map((it) => it.name)).toEqual(["a/d/x", "b/x"]);
  });
  const area = (path: string[], name: string) => ({
    path,
    name,
    size: 1,
    text: "",
    colour: "compute",
  });
  test("a scope with one thing inside is named together with it", () => {
    const tree = nested([area(["a", "b"], "x"), area(["c"], "y"), area(["c"], "z")]);
    expect(tree.children!.map((it) => [it.name, it.at])).toEqual([
      ["a/b/x", 0],
      ["c", null],
    ]);
    expect(tree.children![1]!.children!.map((it) => it.at)).toEqual([1, 2]);
  });
});
