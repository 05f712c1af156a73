// Curves of a log: grouped, put on one axis, smoothed.

import type { Scalar } from "../data/tables";

export interface Curve {
  run: string;
  rows: Scalar[];
}

/** Tags by what stands before the first slash, in the order of the alphabet; each with its curves. */
export function byGroup(rows: Scalar[]): [string, [string, Curve[]][]][] {
  const groups = new Map<string, Map<string, Map<string, Scalar[]>>>();
  const inside = <K, V>(map: Map<K, V>, key: K, make: () => V): V => {
    let it = map.get(key);
    if (it === undefined) map.set(key, (it = make()));
    return it;
  };
  for (const row of rows) {
    const group = row.tag.includes("/") ? row.tag.slice(0, row.tag.indexOf("/")) : "";
    const tags = inside(groups, group, () => new Map<string, Map<string, Scalar[]>>());
    const curves = inside(tags, row.tag, () => new Map<string, Scalar[]>());
    inside(curves, row.run, () => []).push(row);
  }
  const sorted = <V>(map: Map<string, V>) => [...map].sort(([a], [b]) => a.localeCompare(b));
  return sorted(groups).map(([group, tags]) => [
    group,
    sorted(tags).map(([tag, curves]) => [
      tag,
      sorted(curves).map(([run, list]) => ({ run, rows: list })),
    ]),
  ]);
}

/**
 * An exponential moving average, corrected for its beginning, as TensorBoard smooths. What is no
 * number stays a gap.
 */
export function smoothed(values: (number | null)[], weight: number): (number | null)[] {
  if (weight <= 0) return values;
  let last = 0;
  let seen = 0;
  return values.map((it) => {
    if (it === null || !Number.isFinite(it)) return null;
    last = last * weight + (1 - weight) * it;
    seen += 1;
    return last / (1 - weight ** seen);
  });
}
