// Counters as lines: what the samples beside a run, or an allocator, said over time.

import { useAnswer, type Answer } from "../data/store";
import type { CounterTrack } from "../data/types";

export const useCounters = (run: number): Answer<CounterTrack[]> =>
  useAnswer<CounterTrack[]>(`runs/${run}/counters`);

/** Several curves on one axis: a curve has nothing where only another has a point. */
export function besideOneAnother(lines: { x: number[]; y: (number | null)[] }[]): {
  x: number[];
  values: (number | null)[][];
} {
  const x = [...new Set(lines.flatMap((it) => it.x))].sort((a, b) => a - b);
  const at = new Map(x.map((it, index) => [it, index]));
  const values = lines.map((line) => {
    const all = new Array<number | null>(x.length).fill(null);
    line.x.forEach((it, index) => (all[at.get(it)!] = line.y[index] ?? null));
    return all;
  });
  return { x, values };
}

/** Several lines on one axis: a line holds its value where only another has a point. */
export function onOneAxis(lines: { x: number[]; y: number[] }[]): {
  x: number[];
  values: (number | null)[][];
} {
  const x = [...new Set(lines.flatMap((it) => it.x))].sort((a, b) => a - b);
  const values = lines.map((line) => {
    let at = 0;
    let last: number | null = null;
    const end = line.x.at(-1) ?? -Infinity;
    return x.map((moment) => {
      while (at < line.x.length && line.x[at]! <= moment) last = line.y[at++]!;
      return moment > end ? null : last;
    });
  });
  return { x, values };
}
