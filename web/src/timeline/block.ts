// One track of one tile, ready to be drawn and to be pointed at.

import { NO_NAME, OPEN_END, tileLength, type TrackTile } from "./tiles";

/** What is written into a span's last word, beside lane and kind. */
export const LIT = 1;
export const MERGED = 2;
/** It began in an earlier tile. */
export const CONTINUES = 4;

/** Words of a span as it is drawn: left, right, and lane | kind | fill | flags. */
export const SPAN_WORDS = 3;
/** With four corners on the GPU. */
const COLUMN_BYTES = 8 + 5 * 4 + 2 + 4 * 4 * SPAN_WORDS;

/** Which events are lit, the rest being dimmed. */
export interface Lights {
  lit: ReadonlySet<number>;
  /** When lit events begin, by track and lane, sorted: they may be merged into others. */
  starts: ReadonlyMap<number, Float64Array>;
  /** Changes with the lit events. */
  marks: number;
}

/** A lane of a track, as a number; −1 stands for events of which the lane is not known. */
const laneOf = (track: number, lane: number): number => track * 512 + lane + 1;

export function lightsOf(
  places: readonly { event: number; track: number; lane?: number; start_ps: number }[],
  marks: number,
): Lights {
  const starts = new Map<number, number[]>();
  for (const it of places) {
    const key = laneOf(it.track, it.lane ?? -1);
    const own = starts.get(key);
    if (own) own.push(it.start_ps);
    else starts.set(key, [it.start_ps]);
  }
  return {
    lit: new Set(places.map((it) => it.event)),
    starts: new Map([...starts].map(([key, own]) => [key, Float64Array.from(own).sort()])),
    marks,
  };
}

export class Block {
  readonly level: number;
  /** When its tile begins, and how long that is. */
  readonly begin: number;
  readonly length: number;
  readonly n: number;
  readonly bytes: number;
  /** Where each lane's spans begin; one more than there are lanes. */
  readonly laneStarts: Uint32Array;
  /** Spans that are wide enough to be named. */
  readonly named: Uint32Array;
  /** The painter's own, with the marks it was made for. */
  drawn: unknown = null;
  drawnMarks = -1;

  constructor(
    level: number,
    tile: number,
    readonly spans: TrackTile,
  ) {
    this.level = level;
    this.length = tileLength(level);
    this.begin = tile * this.length;
    this.n = spans.left.length;
    this.bytes = 200 + this.n * COLUMN_BYTES;
    const lanes = this.n > 0 ? spans.lane[this.n - 1]! + 1 : 0;
    this.laneStarts = new Uint32Array(lanes + 1);
    const named: number[] = [];
    for (let at = 0; at < this.n; at += 1) {
      this.laneStarts[spans.lane[at]! + 1]! += 1;
      if (spans.name[at] !== NO_NAME) named.push(at);
    }
    for (let lane = 0; lane < lanes; lane += 1) {
      this.laneStarts[lane + 1]! += this.laneStarts[lane]!;
    }
    this.named = Uint32Array.from(named);
  }

  start(at: number): number {
    return this.begin + (this.spans.left[at]! / 2 ** 32) * this.length;
  }

  /** Where it ends, or the tile does. */
  end(at: number): number {
    const right = this.spans.right[at]!;
    return right === OPEN_END
      ? this.begin + this.length
      : this.begin + (right / 2 ** 32) * this.length;
  }

  goesOn(at: number): boolean {
    return this.spans.right[at] === OPEN_END;
  }

  /** The span of a lane at a time, or the nearest one within `slack`; −1 where there is none. */
  find(lane: number, time: number, slack: number): number {
    if (lane + 1 >= this.laneStarts.length) return -1;
    const from = this.laneStarts[lane]!;
    let [low, high] = [from, this.laneStarts[lane + 1]!];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.start(middle) <= time) low = middle + 1;
      else high = middle;
    }
    const after = low < this.laneStarts[lane + 1]! ? this.start(low) - time : Infinity;
    const before = low > from ? Math.max(time - this.end(low - 1), 0) : Infinity;
    if (before === 0) return low - 1;
    if (Math.min(before, after) > slack) return -1;
    return before <= after ? low - 1 : low;
  }

  /** The spans as they are drawn; those of lit events are marked, or what they are merged into. */
  words(lights: Lights): Uint32Array {
    const { lit } = lights;
    const { left, right, lane, kind, count, total, event } = this.spans;
    const words = new Uint32Array(this.n * SPAN_WORDS);
    for (let at = 0; at < this.n; at += 1) {
      const merged = count[at]! > 1;
      let flags = merged ? MERGED : count[at] === 0 ? CONTINUES : 0;
      if (lit.size > 0 && (lit.has(event[at]!) || (merged && this.holdsAny(at, lights)))) {
        flags |= LIT;
      }
      let fill = 255;
      if (merged) {
        const width = ((right[at]! - left[at]!) / 2 ** 32) * this.length;
        fill = width > 0 ? Math.min(Math.round((255 * total[at]!) / width), 255) : 0;
      }
      words[at * SPAN_WORDS] = left[at]!;
      words[at * SPAN_WORDS + 1] = right[at]!;
      words[at * SPAN_WORDS + 2] =
        (lane[at]! | (kind[at]! << 8) | (fill << 16) | (flags << 24)) >>> 0;
    }
    return words;
  }

  /** Whether a lit event begins within a span; both ends were rounded. */
  private holdsAny(at: number, { starts }: Lights): boolean {
    const slack = this.length / 2 ** 31;
    const [from, to] = [this.start(at) - slack, this.end(at) + slack];
    return [this.spans.lane[at]!, -1].some((lane) => {
      const own = starts.get(laneOf(this.spans.track, lane));
      if (!own) return false;
      let [low, high] = [0, own.length];
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (own[middle]! < from) low = middle + 1;
        else high = middle;
      }
      return low < own.length && own[low]! <= to;
    });
  }
}
