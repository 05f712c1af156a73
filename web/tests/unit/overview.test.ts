// The router reads the address when it is loaded, so there must be one.
import { beforeAll, describe, expect, test, vi } from "vitest";
import type { Evidence, Finding, Fix } from "../../src/data/types";
import { blocks } from "../../src/parts/markdown";
import type { WhatIf } from "../../src/data/tables";
import { after, inWords, isOfInput, stageName } from "../../src/parts/what-if";
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

describe("where evidence is shown", () => {
  const lit = new Map(
    [
      { id: "0.1", from: 0, to: 9, step: 4, n_events: 0, lit_ps: 3e9 },
      { id: "0.2", from: 0, to: 9, step: 4, n_events: 1200, lit_ps: 0 },
      { id: "0.3.0", from: 0, to: 9, step: null, n_events: 1, lit_ps: 0 },
    ].map((it) => [it.id, it]),
  );
  test("lit on the timeline, else as rows of their table", () => {
    const at = (id: string, it: Partial<Evidence>) => places.placeOf(id, evidence(it), lit);
    expect(at("0.2", { events: [7, 9] })).toMatchObject({
      href: "#timeline?run=2&evidence=0.2",
      short: "1,200 events",
    });
    expect(at("0.1", { table: "step_time", rows: [2] })?.short).toBe("3 ms of step 4");
    expect(at("0.0", { table: "step_spread", rows: [0, 2] })?.href).toBe(
      "#tables?run=2&table=step_spread&rows=0%2C2",
    );
    expect(at("0.0", {})).toBeNull();
  });
  test("events show more than times, times more than rows", () => {
    const list = [
      evidence({ table: "memory", rows: [0] }),
      evidence({ table: "step_time", rows: [0] }),
      evidence({ events: [1] }),
    ];
    expect(places.bestPlace("0", list, lit)?.short).toBe("1,200 events");
    expect(places.bestPlace("0", list.slice(0, 2), lit)?.short).toBe("3 ms of step 4");
    expect(places.bestPlace("0", list.slice(0, 1), lit)?.href).toContain("#tables?");
    expect(places.bestPlace("0.3", list, lit)?.short).toBe("1 event");
    expect(places.bestPlace("0", [], lit)).toBeNull();
  });
  test("evidence is found by its name, of symptoms too", () => {
    const finding = (title: string, of: Evidence[], symptoms: Finding[] = []) =>
      ({ title, evidence: of, symptoms }) as unknown as Finding;
    const inner = finding("inner", [evidence({ text: "b" })]);
    const all = [finding("outer", [evidence({ text: "a" })], [inner])];
    expect(places.evidenceOf(all, "0.0")?.evidence.text).toBe("a");
    expect(places.evidenceOf(all, "0.0.0")?.evidence.text).toBe("b");
    for (const wrong of ["", "x", "7.0", "0.9", "0.5.0"]) {
      expect(places.evidenceOf(all, wrong)).toBeNull();
    }
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
  test("what a finding promises of a change is what is shown of it", () => {
    const row = {
      change: "prefetch",
      ...{ step_ps: 10e9, new_step_ps: 5e9, best_ps: 4e9, worst_ps: 6e9 },
    } as WhatIf;
    const finding = (fix: Partial<Fix>) => ({ fix: [{ what_if: "prefetch", ...fix }] }) as Finding;
    expect(after(row, [])).toMatchObject({ likely_ps: 5e9, faster: "1.67–2.5×", why: null });
    const promised = finding({
      step_after_ms: { low: 3, likely: 5, high: 8 },
      ...{ speedup_low: 1.25, speedup_high: 10 / 3, why: null },
    });
    const expected = { best_ps: 3e9, likely_ps: 5e9, worst_ps: 8e9, faster: "1.25–3.3×" };
    expect(after(row, [promised])).toMatchObject(expected);
    // Also where it hangs below another finding, and stands behind an edit that promises nothing.
    const untold = finding({ step_after_ms: null, why: "one step" });
    expect(after(row, [{ ...untold, symptoms: [promised] }])).toMatchObject(expected);
    expect(after(row, [untold])).toMatchObject({ faster: "not told", why: "one step" });
    expect(after({ ...row, change: "cache x" }, [promised]).likely_ps).toBe(5e9);
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
