// Counters as lines: what the samples beside a run, or an allocator, said over time.

import { useMemo } from "preact/hooks";
import { useSql } from "../data/more";
import type { Answer } from "../data/store";

export interface CounterTrack {
  id: number;
  name: string;
  host: string | null;
  n: number;
  first_ps: number;
  last_ps: number;
}

export const useCounters = (run: number): Answer<CounterTrack[]> =>
  useSql<CounterTrack>(
    run,
    `select t.id, t.name, t.host, count(*) as n, min(c.time_ps) as first_ps,
       max(c.time_ps) as last_ps
     from counter c join track t on t.id = c.track group by t.id, t.name, t.host order by t.id`,
  );

interface Point {
  track: number;
  time_ps: number;
  low: number;
  high: number;
  mean: number;
}

export interface Line {
  x: number[];
  low: number[];
  high: number[];
  mean: number[];
}

/** Points a line has at most: about one for each pixel. */
const PARTS = 600;

/** Lowest, highest and mean value in each of some hundred parts of the time, by track. */
export function useLines(run: number, tracks: CounterTrack[] | null): Answer<Map<number, Line>> {
  const wanted = tracks && tracks.length > 0 ? tracks : null;
  const from = wanted ? Math.min(...wanted.map((it) => it.first_ps)) : 0;
  const to = wanted ? Math.max(...wanted.map((it) => it.last_ps)) : 0;
  const part = Math.max(1, Math.ceil((to - from) / PARTS));
  const { value, error } = useSql<Point>(
    run,
    wanted &&
      `select track, min(time_ps) as time_ps, min(value) as low, max(value) as high,
         avg(value) as mean
       from counter where track in (${wanted.map((it) => it.id).join(", ")})
       group by track, (time_ps - (${from})) / ${part} order by track, time_ps`,
  );
  const lines = useMemo(() => {
    if (!value) return null;
    const by = new Map<number, Line>();
    for (const it of value) {
      let line = by.get(it.track);
      if (!line) by.set(it.track, (line = { x: [], low: [], high: [], mean: [] }));
      line.x.push(it.time_ps);
      line.low.push(it.low);
      line.high.push(it.high);
      line.mean.push(it.mean);
    }
    return by;
  }, [value]);
  return { value: lines, error };
}

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
