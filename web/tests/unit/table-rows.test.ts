import { describe, expect, test } from "vitest";
import {
  cellText,
  csv,
  kept,
  parseSort,
  searchable,
  sorted,
  sortText,
  split,
  type RowColumn,
} from "../../src/parts/table-rows";

interface Row {
  name: string | null;
  self: number | null;
}

const name: RowColumn<Row> = { key: "name", kind: "text", value: (it) => it.name };
const self: RowColumn<Row> = { key: "self", kind: "time", value: (it) => it.self };
const rows: Row[] = [
  { name: "model/dense_10/MatMul", self: 2_500_000 },
  { name: "model/dense_2/MatMul", self: null },
  { name: null, self: 1_000 },
  { name: "Adam/Sqrt", self: 40_000_000_000 },
];

test("a filter keeps rows that hold every word, in any order and case", () => {
  const find = (text: string) =>
    kept(rows, () => searchable(rows, [name, self]), text).map((it) => it.name);
  expect(find("matmul DENSE_2")).toEqual(["model/dense_2/MatMul"]);
  expect(find("  ")).toHaveLength(4);
  expect(find("2500000")).toEqual([]);
});

describe("sorting", () => {
  test("what is not known comes last, both ways", () => {
    const up = sorted(rows, self, false).map((it) => it.self);
    const down = sorted(rows, self, true).map((it) => it.self);
    expect(up).toEqual([1_000, 2_500_000, 40_000_000_000, null]);
    expect(down).toEqual([40_000_000_000, 2_500_000, 1_000, null]);
  });

  test("numbers within names count as numbers, and the rows given stay as they are", () => {
    const before = rows.slice();
    expect(sorted(rows, name, false).map((it) => it.name)).toEqual([
      "Adam/Sqrt",
      "model/dense_2/MatMul",
      "model/dense_10/MatMul",
      null,
    ]);
    expect(rows).toEqual(before);
  });

  test("the order survives the address", () => {
    for (const sort of [
      { key: "self_ps", descending: true },
      { key: "name", descending: false },
    ]) {
      expect(parseSort(sortText(sort))).toEqual(sort);
    }
    expect(parseSort("")).toBeUndefined();
  });
});

describe("cells", () => {
  test("one unit for the column, and what rounds to nothing is not nothing", () => {
    const { unit, text } = cellText(self, rows);
    expect(unit).toBe("ms");
    expect(text(40_000_000_000)).toBe("40.00");
    expect(text(2_500_000)).toBe("<0.01");
    expect(text(0)).toBe("0.00");
    expect(text(null)).toBe("–");
  });

  test("a small share is not none", () => {
    const share: RowColumn<number> = { key: "share", kind: "share", value: (it) => it };
    const { text } = cellText(share, [0.0001, 0, 0.25]);
    expect([0.0001, 0, 0.25].map(text)).toEqual(["<0.1%", "0.0%", "25%"]);
  });

  test("bytes a second", () => {
    const rate: RowColumn<number> = { key: "rate", kind: "bytes", value: (it) => it, per: "/s" };
    const { unit, text } = cellText(rate, [20_971_520_000, 92_092_803]);
    expect(unit).toBe("GB/s");
    expect(text(92_092_803)).toBe("0.09");
  });

  test("whole numbers stay whole, others get as many digits as the largest allows", () => {
    const number: RowColumn<number> = { key: "n", kind: "number", value: (it) => it };
    expect(cellText(number, [1_234_567, 3]).text(1_234_567)).toBe("1,234,567");
    expect(cellText(number, [0.952_380_9, 3]).text(0.952_380_9)).toBe("0.952");
  });
});

test("a copy has all digits, units in its header, and quotes what needs it", () => {
  const share: RowColumn<Row> = { key: "self_share", kind: "share", value: () => 1 / 3 };
  const flag: RowColumn<Row> = { key: "limit", kind: "bytes", value: () => null };
  const text = csv([name, self, share, flag], [{ name: 'a "b", c\nd', self: 40_000_000_001 }]);
  expect(text).toBe(
    'name,self_ps,self_share,limit_bytes\r\n"a ""b"", c\nd",40000000001,0.3333333333333333,\r\n',
  );
});

test("names are parted before their last part, C++ names are not", () => {
  expect(split("model/conv2d/BiasAdd")).toEqual(["model/conv2d/", "BiasAdd"]);
  expect(split("MatMul")).toEqual(["MatMul", ""]);
  expect(split("/MatMul")).toEqual(["/MatMul", ""]);
  expect(split("a/b/")).toEqual(["a/", "b/"]);
  expect(split("void Eigen::Meta<a/b>(int)")).toEqual(["void Eigen::Meta<a/b>(int)", ""]);
});
