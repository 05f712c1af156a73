import { describe, expect, test } from "vitest";
import { colourOf, resultColumns, shapeOf } from "../../src/parts/result-shape";
import type { Cell } from "../../src/data/types";

const make = (columns: string[], rows: Cell[][]) => {
  const result = { columns, rows, truncated: false };
  const found = resultColumns(result);
  return { found, shape: shapeOf(result, found) };
};

describe("columns of a result", () => {
  test("are told apart by name and by what is in them", () => {
    const { found } = make(
      ["name", "self_ps", "peak_bytes", "self_share", "eager", "n", "all_null"],
      [
        [null, null, 1, 0.5, null, 1, null],
        ["a", 5, 2, 0.5, true, 2.5, null],
      ],
    );
    expect(found.map((it) => it.kind)).toEqual([
      "text",
      "time",
      "bytes",
      "share",
      "bool",
      "number",
      "text",
    ]);
  });

  test("a text among numbers makes the column text", () => {
    expect(make(["value"], [[1], ["x"]]).found[0]!.kind).toBe("text");
  });

  test("two of one name have keys of their own", () => {
    const { found } = make(["name", "name"], [["a", "b"]]);
    expect(found.map((it) => it.key)).toEqual(["name", "name_2"]);
  });
});

describe("the chart of a result", () => {
  test("names with figures are bars, and only figures of one kind share the axis", () => {
    const { shape } = make(
      ["name", "self_ps", "count", "total_ps", "event"],
      [
        ["a", 1, 2, 3, 4],
        ["b", 1, 2, 3, 4],
      ],
    );
    expect(shape?.as).toBe("bars");
    expect(shape?.ys.map((it) => it.name)).toEqual(["self_ps", "total_ps"]);
  });

  test("a first column that grows makes a line", () => {
    const steps = (xs: number[]) =>
      make(
        ["step", "dur_ps"],
        xs.map((x) => [x, 7]),
      ).shape;
    expect(steps([0, 1, 2, 3])?.as).toBe("line");
    expect(steps([0, 1, 1, 2])?.as).toBe("bars");
    expect(steps(Array.from({ length: 60 }, () => 1))).toBeNull();
  });

  test("there is none without figures, or of a single row", () => {
    expect(
      make(
        ["name", "kind", "id"],
        [
          ["a", "b", 1],
          ["c", "d", 2],
        ],
      ).shape,
    ).toBeNull();
    expect(make(["name", "n"], [["a", 1]]).shape).toBeNull();
  });

  test("categories keep their colours", () => {
    const { found } = make(["step", "input_ps", "dur_ps"], [[1, 2, 3]]);
    expect(found.slice(1).map((it, at) => colourOf(it, at))).toEqual(["input", "input"]);
  });
});
