import { expect, test } from "vitest";
import {
  bars,
  depth,
  flame,
  heaviest,
  matchedPs,
  type FlameInput,
  type FlameNode,
} from "../../src/parts/flame";

interface Row {
  id: number;
  parent: number | null;
  name: string;
  start: number;
  ps: number;
  own: number;
}

const by: FlameInput<Row> = {
  id: (it) => String(it.id),
  parent: (it) => (it.parent === null ? null : String(it.parent)),
  key: (it) => it.name,
  name: (it) => it.name,
  ps: (it) => it.ps,
  selfPs: (it) => it.own,
  start: (it) => it.start,
};

const row = (
  id: number,
  parent: number | null,
  name: string,
  start: number,
  ps: number,
  own: number,
) => ({ id, parent, name, start, ps, own });

// main calls load, step, load; then another main, which calls load.
const rows: Row[] = [
  row(0, null, "main", 0, 60, 10),
  row(1, 0, "load", 0, 10, 10),
  row(2, 0, "step", 10, 20, 20),
  row(3, 0, "load", 30, 20, 20),
  row(4, null, "main", 60, 40, 0),
  row(5, 4, "load", 60, 40, 40),
];

const shape = (it: FlameNode<Row>): unknown =>
  it.children.length === 0
    ? `${it.name} ${it.ps}`
    : [`${it.name} ${it.ps}`, ...it.children.map(shape)];

test("in order of time only neighbours are one", () => {
  const { root } = flame(rows, by, "time");
  expect(shape(root)).toEqual(["All 100", ["main 100", "load 10", "step 20", "load 60"]]);
});

test("longest first, all of a name inside the same caller are one", () => {
  const { root, of } = flame(rows, by, "heavy");
  expect(shape(root)).toEqual(["All 100", ["main 100", "load 70", "step 20"]]);
  expect(of.get("5")).toBe(of.get("1"));
  expect(of.get("1")!.rows.map((it) => it.id)).toEqual([1, 3, 5]);
});

test("both orders keep the whole width, and nothing is wider than what is around it", () => {
  // Any tree: what is inside takes at most the time of what is around it.
  let seed = 5;
  const next = (below: number) => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return Math.floor((seed / 2147483648) * below);
  };
  const any: Row[] = [];
  const grow = (parent: number | null, start: number, ps: number, level: number): void => {
    const id = any.length;
    const made = row(id, parent, "abcd"[next(4)]!, start, ps, ps);
    any.push(made);
    let at = start;
    while (level < 6 && made.own > 3 && next(4) > 0) {
      const part = 1 + next(made.own);
      made.own -= part;
      grow(id, at, part, level + 1);
      at += part;
    }
  };
  for (let n = 0; n < 20; n += 1) grow(null, n * 1000, 100 + next(900), 0);
  const total = any.filter((it) => it.parent === null).reduce((sum, it) => sum + it.ps, 0);
  for (const order of ["time", "heavy"] as const) {
    const { root } = flame(any, by, order);
    expect(root.ps).toBe(total);
    const check = (it: FlameNode<Row>): void => {
      const inside = it.children.reduce((sum, child) => sum + child.ps, 0);
      expect(inside + it.selfPs).toBe(it.ps);
      it.children.forEach(check);
    };
    check(root);
    const drawn = bars(root, 1000);
    const level = (n: number) =>
      drawn.filter((it) => it.level === n).reduce((sum, it) => sum + it.width, 0);
    expect(level(0)).toBe(1000);
    expect(level(1)).toBeCloseTo(1000);
    for (let n = 1; n < depth(root); n += 1) {
      expect(level(n)).toBeLessThanOrEqual(level(n - 1) + 1e-6);
    }
    expect(drawn.every((it) => it.left >= 0 && it.left + it.width <= 1000 + 1e-6)).toBe(true);
  }
});

test("what is zoomed into fills the width, below what is around it", () => {
  const { of } = flame(rows, by, "heavy");
  const drawn = bars(of.get("1")!, 500);
  expect(drawn.map((it) => [it.node.name, it.level, it.left, it.width])).toEqual([
    ["All", 0, 0, 500],
    ["main", 1, 0, 500],
    ["load", 2, 0, 500],
  ]);
});

test("neighbours too narrow to point at are drawn as one", () => {
  const narrow = Array.from({ length: 100 }, (_, at) => row(at, null, `f${at}`, at, 1, 1));
  const { root } = flame(narrow, by, "time");
  const drawn = bars(root, 100);
  expect(drawn.length).toBe(2);
  expect(drawn[1]).toMatchObject({ many: 100, left: 0, ps: 100 });
  expect(drawn[1]!.width).toBeCloseTo(100);
});

test("a row without what is around it is left out, as what was cut off is", () => {
  const { root } = flame([row(7, 3, "lost", 0, 5, 5), ...rows.slice(0, 1)], by, "time");
  expect(root.ps).toBe(60);
});

test("time of a match is counted once, and the heaviest by name", () => {
  const { root } = flame(rows, by, "time");
  expect(matchedPs(root, (it) => it.name === "load")).toBe(70);
  expect(matchedPs(root, (it) => it.name !== "All")).toBe(100);
  expect(heaviest(root, 2).map((it) => [it.name, it.ps])).toEqual([
    ["load", 70],
    ["step", 20],
  ]);
});
