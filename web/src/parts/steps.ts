// Steps as their tables tell them, put beside one another for drawing.

import type { Category } from "../data/types";
import { CATEGORIES } from "../data/types";

export interface Step {
  host: string;
  step: number;
  number: number | null;
  start_ps: number;
  dur_ps: number;
  complete: boolean;
  warmup: boolean;
}

export type StepTime = { host: string; step: number; device: string; counts: boolean } & {
  [C in `${Category}_ps` | "dur_ps"]: number | null;
};

export interface StepOutlier {
  host: string;
  step: number;
  dur_ps: number;
  excess_ps: number;
  ratio: number;
  category: Category;
  name: string | null;
  period: number | null;
}

export interface StepSpread {
  host: string;
  steps: number;
  mean_ps: number;
  typical_ps: number;
  spread_ps: number;
  limit_ps: number;
  p50_ps: number;
  p90_ps: number;
  p99_ps: number;
  p999_ps: number;
  slow: number;
  modes: number;
  slow_cost_ps: number;
}

/** Each host's devices, as `host device` in the order of the table. */
export function placesOf(times: StepTime[]): { host: string; device: string }[] {
  const seen = new Map<string, { host: string; device: string }>();
  for (const { host, device } of times) seen.set(`${host}\n${device}`, { host, device });
  return [...seen.values()];
}

export interface Part {
  category: Category;
  values: (number | null)[];
}

/** The categories that occur at all, in the order of the design, the first at the bottom. */
export function partsOf(times: StepTime[]): Part[] {
  return CATEGORIES.map((category) => ({
    category,
    values: times.map((it) => it[`${category}_ps`]),
  })).filter((it) => it.values.some((value) => value !== null && value > 0));
}

/** Neighbours that belong together, as one band from half a step before to half a step after. */
export function runsOf<T>(list: T[], belongs: (it: T) => boolean, x: (it: T) => number) {
  const found: { from: number; to: number }[] = [];
  let last = -2;
  list.forEach((it, at) => {
    if (!belongs(it)) return;
    if (last === at - 1) found.at(-1)!.to = x(it) + 0.5;
    else found.push({ from: x(it) - 0.5, to: x(it) + 0.5 });
    last = at;
  });
  return found;
}
