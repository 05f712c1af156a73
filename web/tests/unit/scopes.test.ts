import { expect, test } from "vitest";
import type { ScopeTime } from "../../src/data/tables";
import { around, places } from "../../src/parts/scopes";

const row = (scope: string, parent: string | null, total: number, own: number, device: number) => ({
  scope,
  parent,
  depth: scope === "/" ? 0 : scope.split("/").length,
  n_ops: 1,
  count: 1,
  total_ps: total,
  self_ps: own,
  device_ps: device,
});

const rows: ScopeTime[] = [
  row("/", null, 100, 10, 80),
  row("model", "/", 30, 10, 80),
  row("model/dense", "model", 20, 20, 60),
  row("Adam", "/", 60, 60, 0),
];

test("scopes lie under the one around them, the longest first, as wide as their time", () => {
  const found = places(rows, "host", "/");
  expect(found.map((it) => it.scope)).toEqual(["/", "Adam", "model", "model/dense"]);
  const adam = found[1]!;
  const model = found[2]!;
  const dense = found[3]!;
  expect([adam.left, adam.right]).toEqual([0, 0.6]);
  expect([model.left, model.right].map((it) => it.toFixed(6))).toEqual(["0.600000", "0.900000"]);
  expect(dense.right - dense.left).toBeCloseTo(0.2);
  expect(dense).toMatchObject({ level: 2, parent: "model", name: "dense", ps: 20 });
});

test("a scope without time on that side has no place", () => {
  expect(places(rows, "device", "/").map((it) => it.scope)).toEqual(["/", "model", "model/dense"]);
  expect(places(rows, "device", "Adam")).toEqual([]);
});

test("what is zoomed into fills the width", () => {
  const [top, dense] = places(rows, "device", "model");
  expect([top!.left, top!.right, top!.level]).toEqual([0, 1, 0]);
  expect(dense!.right - dense!.left).toBeCloseTo(0.75);
});

test("the way to a scope", () => {
  const byScope = new Map(rows.map((it) => [it.scope, it]));
  expect(around("model/dense", byScope)).toEqual(["/", "model", "model/dense"]);
  expect(around("gone", byScope)).toEqual([]);
});
