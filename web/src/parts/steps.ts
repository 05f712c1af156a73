// Steps as their tables tell them, put beside one another for drawing.

import type { StepTime } from "../data/tables";
import type { Category } from "../data/types";
import { CATEGORIES } from "../data/types";

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
