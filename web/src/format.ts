// Numbers as the terminal prints them: three digits, thousands apart by a comma, a unit.

const UNITS: [string, number][] = [
  ["s", 1e12],
  ["ms", 1e9],
  ["µs", 1e6],
  ["ns", 1e3],
  ["ps", 1],
];

/** What is not known is not zero. */
export const UNKNOWN = "–";

function threeDigits(value: number): string {
  const size = Math.abs(value);
  if (size >= 99.95) return thousands(Math.round(value));
  return String(Number(value.toFixed(size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3)));
}

export function time(ps: number | null | undefined): string {
  if (ps === null || ps === undefined) return UNKNOWN;
  if (ps === 0) return "0";
  const [unit, scale] = unitOf(ps);
  return unit === "ps" ? `${thousands(Math.round(ps))} ps` : `${threeDigits(ps / scale)} ${unit}`;
}

function unitOf(ps: number): [string, number] {
  return UNITS.find(([, scale]) => Math.abs(ps) >= scale * 0.9995) ?? ["ps", 1];
}

export const ms = (value: number | null | undefined): string =>
  time(value === null || value === undefined ? null : value * 1e9);

/** One unit for a whole column, chosen by its largest value; digits line up. */
export function timeColumn(values: (number | null)[]): ColumnText {
  const largest = largestOf(values);
  if (largest === 0) return { unit: "", text: () => "0" };
  const [unit, scale] = unitOf(largest);
  const decimals = unit === "ps" ? 0 : decimalsOf(largest / scale);
  return { unit, text: (ps) => grouped((ps / scale).toFixed(decimals)) };
}

export interface ColumnText {
  unit: string;
  text: (value: number) => string;
}

const largestOf = (values: (number | null)[]): number =>
  values.reduce<number>((most, it) => Math.max(most, Math.abs(it ?? 0)), 0);

const decimalsOf = (size: number): number =>
  size >= 999.95 ? 0 : size >= 99.995 ? 1 : size >= 9.9995 ? 2 : 3;

export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined) return UNKNOWN;
  const value = share * 100;
  return `${value >= 9.95 ? value.toFixed(0) : value.toFixed(1)}%`;
}

export function thousands(n: number | null | undefined): string {
  return n === null || n === undefined ? UNKNOWN : grouped(String(n));
}

function grouped(digits: string): string {
  const [whole, fraction] = digits.split(".", 2);
  const apart = whole!.replace(/\B(?=(\d{3})+$)/g, ",");
  return fraction === undefined ? apart : `${apart}.${fraction}`;
}

const BYTES = ["B", "kB", "MB", "GB", "TB", "PB"];

export function bytes(n: number | null | undefined): string {
  if (n === null || n === undefined) return UNKNOWN;
  let at = 0;
  let value = n;
  while (Math.abs(value) >= 999.95 && at < BYTES.length - 1) {
    value /= 1000;
    at += 1;
  }
  return at === 0 ? `${thousands(n)} B` : `${threeDigits(value)} ${BYTES[at]}`;
}

/** Like `timeColumn`, for bytes. */
export function bytesColumn(values: (number | null)[]): ColumnText {
  const largest = largestOf(values);
  let at = 0;
  while (largest / 1000 ** at >= 999.95 && at < BYTES.length - 1) at += 1;
  const scale = 1000 ** at;
  const decimals = at === 0 ? 0 : decimalsOf(largest / scale);
  return { unit: BYTES[at]!, text: (n) => grouped((n / scale).toFixed(decimals)) };
}

/** Like `timeColumn`, for numbers without a unit: whole ones stay whole. */
export function numberColumn(values: (number | null)[]): ColumnText {
  const whole = values.every((it) => it === null || Number.isInteger(it));
  const decimals = whole ? 0 : decimalsOf(largestOf(values));
  return { unit: "", text: (n) => grouped(n.toFixed(decimals)) };
}

/** `1.15–2.6×`, with as many digits as such a prediction carries; always a range. */
export function gain(low: number | null, high: number | null): string {
  if (low === null || high === null) return "";
  const text = (it: number) => it.toFixed(it < 1.995 ? 2 : it < 9.95 ? 1 : 0);
  return text(low) === text(high) ? `${text(low)}×` : `${text(low)}–${text(high)}×`;
}

/** What a category is called for people. */
export const categoryName = (category: string): string => category.replace("_", " ");

/** Without what the framework puts in front of the user's own names. */
export const plain = (name: string): string => name.replace(/^(StatefulPartitionedCall\/)+/, "");

/** Begins with a capital and ends with a full stop; a name keeps its spelling. */
export function sentence(text: string): string {
  const ended = /[.?:]$/.test(text) ? text : `${text}.`;
  return /^[\p{Ll}]+[,.]?( |\.$)/u.test(ended) ? ended[0]!.toUpperCase() + ended.slice(1) : ended;
}

/** Ticks of an axis: one unit for all, said at the largest. */
function ticks(values: number[], scale: number, unit: string): string[] {
  const last = values.length - 1;
  return values.map((it, at) => {
    const text = grouped(String(Number((it / scale).toPrecision(6))));
    if (at !== last || !unit) return text;
    return unit === "%" ? `${text}%` : `${text} ${unit}`;
  });
}

export function timeTicks(values: number[]): string[] {
  const [unit, scale] = unitOf(Math.max(...values.map(Math.abs), 0));
  return ticks(values, scale, unit);
}

export function bytesTicks(values: number[]): string[] {
  const largest = Math.max(...values.map(Math.abs), 1);
  const at = Math.min(BYTES.length - 1, Math.max(0, Math.floor(Math.log10(largest) / 3)));
  return ticks(values, 1000 ** at, BYTES[at]!);
}

export const percentTicks = (values: number[]): string[] => ticks(values, 0.01, "%");
export const numberTicks = (values: number[]): string[] => ticks(values, 1, "");
export const unitTicks =
  (unit: string) =>
  (values: number[]): string[] =>
    ticks(values, 1, unit);

/** A plain number: whole ones as they are, others with at most four digits. */
export function number(value: number | null | undefined): string {
  if (value === null || value === undefined) return UNKNOWN;
  if (Number.isInteger(value)) return thousands(value);
  if (Math.abs(value) < 0.001) return value.toExponential(3);
  return threeDigits(value);
}
