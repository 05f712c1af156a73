// What the top bar narrows a view to: a host, a device, some steps. It stands in the address.

import { computed } from "@preact/signals";
import { route } from "../router";

export interface Narrowed {
  host: string | null;
  device: string | null;
  /** Both inside. */
  steps: { first: number; last: number } | null;
}

export type Narrowing = keyof Narrowed;

/** `3-8`, or `3` alone; null where it is neither. */
export function stepsFrom(text: string): Narrowed["steps"] {
  const found = /^\s*(\d+)\s*(?:[-–]\s*(\d+)\s*)?$/.exec(text);
  if (!found) return null;
  const [first, last] = [Number(found[1]), Number(found[2] ?? found[1])];
  return first <= last ? { first, last } : null;
}

export const stepsText = (of: Narrowed["steps"]): string =>
  of === null ? "" : of.first === of.last ? String(of.first) : `${of.first}-${of.last}`;

export const narrowed = computed<Narrowed>(() => {
  const { host, device, steps } = route.value.params;
  return { host: host ?? null, device: device ?? null, steps: stepsFrom(steps ?? "") };
});

export const isNarrow = (of: Narrowed): boolean =>
  of.host !== null || of.device !== null || of.steps !== null;

/** Whether a row of a table belongs to it; what a row does not say does not exclude it. */
export function within(
  of: Narrowed,
  row: { host?: string; device?: string; step?: number },
): boolean {
  const { host, device, steps } = of;
  return (
    (host === null || row.host === undefined || row.host === host) &&
    (device === null || row.device === undefined || row.device === device) &&
    (steps === null ||
      row.step === undefined ||
      (row.step >= steps.first && row.step <= steps.last))
  );
}
