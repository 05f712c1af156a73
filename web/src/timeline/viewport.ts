// The window of time that is seen, and how it moves.

import { CELL_BITS, LOWEST_LEVEL, type Window } from "./tiles";

/** No closer than this: a picosecond is a pixel or so. */
const SHORTEST = 2000;

export class Viewport {
  from = 0;
  to = 1;
  /** In CSS pixels. */
  width = 1;
  private bounds: Window = { from: 0, to: 1 };

  /** The trace; a view may reach a little beyond. */
  within(bounds: Window): void {
    this.bounds = bounds;
  }

  get span(): number {
    return this.to - this.from;
  }

  get pixelsPerPs(): number {
    return this.width / (this.to - this.from);
  }

  x(time: number): number {
    return (time - this.from) * (this.width / (this.to - this.from));
  }

  time(x: number): number {
    return this.from + (x / this.width) * (this.to - this.from);
  }

  /** The level whose cells are at most a pixel wide, and as wide as may be. */
  get level(): number {
    const cell = Math.floor(Math.log2(this.span / this.width));
    return Math.max(CELL_BITS + cell, LOWEST_LEVEL);
  }

  set(from: number, to: number): void {
    const whole = Math.max(this.bounds.to - this.bounds.from, SHORTEST);
    const span = Math.min(Math.max(to - from, SHORTEST), whole * 1.2);
    const middle = (from + to) / 2;
    const slack = Math.max(span * 0.4, whole * 0.05);
    const lowest = this.bounds.from - slack;
    const highest = this.bounds.to + slack - span;
    const start = middle - span / 2;
    this.from = Math.max(Math.min(start, highest), Math.min(lowest, highest));
    this.to = this.from + span;
  }

  pan(pixels: number): void {
    const by = pixels / this.pixelsPerPs;
    this.set(this.from + by, this.to + by);
  }

  /** What lies under `x` stays there. */
  zoom(factor: number, x: number): void {
    const anchor = this.time(x);
    const whole = Math.max(this.bounds.to - this.bounds.from, SHORTEST);
    const span = Math.min(Math.max(this.span / factor, SHORTEST), whole * 1.2);
    const from = anchor - (x / this.width) * span;
    this.set(from, from + span);
  }

  /** A window with a margin at both sides. */
  static around(from: number, to: number, margin: number): Window {
    const span = Math.max(to - from, SHORTEST / 2);
    return { from: from - span * margin, to: to + span * margin };
  }
}

const STEPS = [1, 2, 5];

/** A round length of time, at least `least`: 1, 2 or 5 times a power of ten. */
export function roundTime(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return (STEPS.find((it) => it * power >= least) ?? 10) * power;
}
