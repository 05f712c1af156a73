// Steps are the ruler: a strip of the whole trace, the steps in the window, and times.

import type { Timeline, TimelineStep } from "../data/types";
import { time as timeText, thousands } from "../format";
import { withAlpha, type Painter, type Palette } from "./painter";
import type { Window } from "./tiles";
import { extent } from "./tracks";
import { roundTime, type Viewport } from "./viewport";

export const STRIP = 12;
export const STEPS = 22;
export const TICKS = 18;
export const RULER = STRIP + STEPS + TICKS;

const TICK_APART = 90;

/** Where times are counted from. */
export interface Origin {
  time: number;
  text: string;
}

export class Ruler {
  readonly steps: TimelineStep[];
  /** What the strip shows. */
  readonly whole: Window;

  constructor(
    private readonly timeline: Timeline,
    readonly host: number | null,
  ) {
    this.whole = extent(timeline);
    this.steps = timeline.steps.filter((it) => host === null || it.host === host);
  }

  /** The step that a moment lies in, or −1. */
  at(time: number): number {
    const { steps } = this;
    let [low, high] = [0, steps.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (steps[middle]!.start_ps <= time) low = middle + 1;
      else high = middle;
    }
    const step = steps[low - 1];
    return step && time < step.start_ps + step.dur_ps ? low - 1 : -1;
  }

  /** The first step that ends after a moment. */
  private firstIn(time: number): number {
    const { steps } = this;
    let [low, high] = [0, steps.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (steps[middle]!.start_ps + steps[middle]!.dur_ps <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Times count from the step that fills the window, else from the start of the trace. */
  origin(view: Viewport): Origin {
    const at = this.at((view.from + view.to) / 2);
    const step = this.steps[at];
    const inStep = step && view.span < 2 * step.dur_ps;
    const start = inStep ? step.start_ps : this.timeline.start_ps;
    const what = inStep ? `start of step ${step.step}` : "start of trace";
    const tick = roundTime((TICK_APART * view.span) / view.width);
    // Close up, numbers would grow long: then they count from a round time before the window.
    const far = Math.floor((view.from - start) / (tick * 1000)) * tick * 1000;
    if (far <= 0) return { time: start, text: `since ${what}` };
    return { time: start + far, text: `since ${what} + ${shortTime(far)}` };
  }

  /** Faint bands behind the rows: steps that do not count, and where each begins. */
  behind(painter: Painter, view: Viewport, palette: Palette, top: number, bottom: number): void {
    const { steps } = this;
    const narrow = 24 / view.pixelsPerPs;
    for (let at = this.firstIn(view.from); at < steps.length; at += 1) {
      const step = steps[at]!;
      if (step.start_ps > view.to) break;
      if (step.dur_ps < narrow) continue;
      const x = view.x(step.start_ps);
      const right = Math.min(view.x(step.start_ps + step.dur_ps), view.width);
      const left = Math.max(x, 0);
      if (!step.counts) painter.rect(left, top, right - left, bottom - top, palette.sunken);
      if (x >= 0) painter.rect(x, top, 1, bottom - top, palette.line);
      if (right < view.width) painter.rect(right, top, 1, bottom - top, palette.line);
    }
  }

  draw(
    painter: Painter,
    view: Viewport,
    palette: Palette,
    origin: Origin,
    marks: readonly number[],
    current: number | null,
  ): void {
    this.strip(painter, view, palette, marks);
    this.drawSteps(painter, view, palette);
    this.ticks(painter, view, palette, origin);
    const middle = STRIP + STEPS;
    for (const it of marks) {
      const x = view.x(it);
      if (x < -2 || x > view.width + 2) continue;
      const strong = it === current;
      painter.rect(x - 1, middle, strong ? 3 : 2, strong ? TICKS : 6, palette.accent);
    }
    painter.rect(0, RULER - 1, view.width, 1, palette.strongLine);
  }

  private strip(
    painter: Painter,
    view: Viewport,
    palette: Palette,
    marks: readonly number[],
  ): void {
    const { from: start_ps, to: end_ps } = this.whole;
    const scale = view.width / Math.max(end_ps - start_ps, 1);
    painter.rect(0, 0, view.width, STRIP, palette.sunken);
    const every = Math.ceil(this.steps.length / (view.width / 4));
    for (let at = 0; at < this.steps.length; at += every) {
      painter.rect((this.steps[at]!.start_ps - start_ps) * scale, 2, 1, STRIP - 4, palette.line);
    }
    for (const it of marks) painter.rect((it - start_ps) * scale, 2, 1, STRIP - 4, palette.accent);
    const left = Math.max((view.from - start_ps) * scale, 0);
    const right = Math.min((view.to - start_ps) * scale, view.width);
    painter.rect(left, 0, Math.max(right - left, 2), STRIP, withAlpha(palette.accent, 0.25));
    painter.rect(left, 0, Math.max(right - left, 2), 2, palette.accent);
    painter.rect(0, STRIP - 1, view.width, 1, palette.line);
  }

  private drawSteps(painter: Painter, view: Viewport, palette: Palette): void {
    const { steps } = this;
    const middle = STRIP + STEPS / 2;
    let drawnTo = -2;
    for (let at = this.firstIn(view.from); at < steps.length; at += 1) {
      const step = steps[at]!;
      if (step.start_ps > view.to) break;
      const begin = view.x(step.start_ps);
      const end = view.x(step.start_ps + step.dur_ps);
      if (end < drawnTo + 2 && end < view.width) continue;
      drawnTo = end;
      const left = Math.max(begin, 0);
      const right = Math.min(end, view.width);
      const ground = step.counts ? palette.accentGround : palette.sunken;
      painter.rect(left, STRIP + 1, right - left, STEPS - 2, ground);
      if (begin >= 0) painter.rect(begin, STRIP + 1, 1, STEPS - 2, palette.strongLine);
      if (!step.counts) {
        for (let x = left; x < right; x += 6) {
          painter.rect(x, STRIP + STEPS - 3, Math.min(3, right - x), 1, palette.strongLine);
        }
      }
      const room = right - left - 10;
      if (room < 14) continue;
      const number = `step ${thousands(step.step)}`;
      const full = `${number} · ${timeText(step.dur_ps)}${step.counts ? "" : " · not counted"}`;
      const text = [full, `${step.step} · ${timeText(step.dur_ps)}`, String(step.step)].find(
        (it) => painter.measure(it) <= room,
      );
      if (text) painter.text(left + 6, middle, text, step.counts ? palette.text : palette.faint);
    }
    painter.rect(0, STRIP + STEPS - 1, view.width, 1, palette.line);
  }

  private ticks(painter: Painter, view: Viewport, palette: Palette, origin: Origin): void {
    const tick = roundTime((TICK_APART * view.span) / view.width);
    const top = STRIP + STEPS;
    let at = Math.ceil((view.from - origin.time) / tick) * tick;
    for (; origin.time + at <= view.to; at += tick) {
      const x = view.x(origin.time + at);
      painter.rect(x, top + TICKS - 6, 1, 5, palette.strongLine);
      painter.text(x + 4, top + TICKS / 2, shortTime(at), palette.faint);
    }
  }
}

/** Round times need no digits behind their round part. */
export function shortTime(ps: number): string {
  const text = timeText(Math.abs(ps)).replace(/(\.\d*?)0+(?= )/, "$1");
  return `${ps < 0 ? "−" : ""}${text.replace(/\.(?= )/, "")}`;
}
