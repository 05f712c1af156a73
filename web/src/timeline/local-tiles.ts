// Tiles cut from raw events that are all there, as in an exported file: the server's rules.

import type {
  EventDetails,
  EventLink,
  EventRef,
  RangeResult,
  SearchResult,
  Timeline,
} from "../data/types";
import {
  CELL_BITS,
  LABEL_CELLS,
  NO_NAME,
  OPEN_END,
  tileLength,
  type CounterCell,
  type CounterTile,
  type EventPlace,
  type Tile,
  type TileSource,
  type TrackTile,
  type Window,
} from "./tiles";

/** Events as columns, sorted by track, then start; an event's place is its number. */
export interface EventColumns {
  start: ArrayLike<number>;
  dur: ArrayLike<number>;
  track: ArrayLike<number>;
  lane: ArrayLike<number>;
  /** Into the timeline's kinds. */
  kind: ArrayLike<number>;
  /** Into `names`. */
  name: ArrayLike<number>;
  /** The event around it, or −1. */
  parent: ArrayLike<number>;
  names: string[];
}

export interface Samples {
  track: number;
  time: ArrayLike<number>;
  value: ArrayLike<number>;
}

export interface LocalEdges {
  from: ArrayLike<number>;
  to: ArrayLike<number>;
  kind: string[];
}

/** From here on lanes are shared: events on the last one may overlap. */
const LAST_LANE = 255;
const BARS = 24;

export class LocalTiles implements TileSource {
  /** Rows of each track, lane by lane, as they begin. */
  private readonly lanes = new Map<number, number[][]>();
  private readonly samples: Map<number, Samples>;

  constructor(
    private readonly timeline: Timeline,
    private readonly events: EventColumns,
    samples: Samples[] = [],
    private readonly edges: LocalEdges = { from: [], to: [], kind: [] },
    private readonly args: (event: number) => [string, string | number][] = () => [],
  ) {
    this.samples = new Map(samples.map((it) => [it.track, it]));
    for (let row = 0; row < events.start.length; row += 1) {
      const lanes = this.lanes.get(events.track[row]!) ?? [];
      (lanes[events.lane[row]!] ??= []).push(row);
      this.lanes.set(events.track[row]!, lanes);
    }
  }

  overview(): Promise<Timeline> {
    return Promise.resolve(this.timeline);
  }

  tile(level: number, tile: number, tracks: number[]): Promise<Tile> {
    const cut = [...new Set(tracks)].map((track) => this.cut(level, tile, track));
    return Promise.resolve({ level, tile, tracks: cut });
  }

  private end(row: number): number {
    return this.events.start[row]! + Math.max(this.events.dur[row]!, 0);
  }

  private cut(level: number, tile: number, track: number): TrackTile {
    const out = new Spans(this.events, level, tile);
    (this.lanes.get(track) ?? []).forEach((rows, lane) => this.cutLane(out, rows, lane));
    return out.columns(track);
  }

  private cutLane(out: Spans, rows: number[], lane: number): void {
    const { start, dur } = this.events;
    let place = lowerBound(rows.length, (it) => start[rows[it]!]! < out.begin);
    for (let it = lane < LAST_LANE ? Math.max(place - 1, 0) : 0; it < place; it += 1) {
      if (this.end(rows[it]!) > out.begin) out.push(lane, rows[it]!, { count: 0, total: 0 });
    }
    const to = lowerBound(rows.length, (it) => start[rows[it]!]! < out.end);
    while (place < to) {
      const cell = Math.floor((start[rows[place]!]! - out.begin) / out.cell);
      const cellEnd = out.begin + (cell + 1) * out.cell;
      const short: number[] = [];
      const long: number[] = [];
      for (; place < to && start[rows[place]!]! < cellEnd; place += 1) {
        const row = rows[place]!;
        (dur[row]! >= out.cell ? long : short).push(row);
      }
      const first = out.length;
      if (short.length > 0) {
        const longest = short.reduce((a, b) => (dur[b]! > dur[a]! ? b : a));
        out.push(lane, longest, {
          count: short.length,
          total: short.reduce((sum, it) => sum + Math.max(dur[it]!, 0), 0),
          from: start[short[0]!]!,
          to: Math.max(...short.map((it) => this.end(it))),
        });
      }
      for (const row of long) out.push(lane, row);
      out.sortFrom(first);
    }
  }

  counters(level: number, tile: number, tracks: number[]): Promise<CounterTile[]> {
    const length = tileLength(level);
    const begin = tile * length;
    const cell = tileLength(level - CELL_BITS);
    const answer = tracks.map((track): CounterTile => {
      const cells: CounterCell[] = [];
      const samples = this.samples.get(track);
      if (!samples) return { track, cells };
      const { time, value } = samples;
      let at = lowerBound(time.length, (it) => time[it]! < begin);
      for (; at < time.length && time[at]! < begin + length; at += 1) {
        const place = Math.floor((time[at]! - begin) / cell);
        const last = cells.at(-1);
        const it = value[at]!;
        if (last?.[0] === place) {
          last[1] = Math.min(last[1], it);
          last[2] = Math.max(last[2], it);
          last[3] = it;
        } else {
          cells.push([place, it, it, it]);
        }
      }
      return { track, cells };
    });
    return Promise.resolve(answer);
  }

  search(text: string, limit: number): Promise<SearchResult> {
    const { start, dur, name, names, track, lane } = this.events;
    const wanted = text.toLowerCase();
    const fits = names.map((it) => it.toLowerCase().includes(wanted));
    const sums = new Map<number, { name: string; count: number; total_ps: number }>();
    const rows: number[] = [];
    for (let row = 0; row < start.length; row += 1) {
      const id = name[row]!;
      if (!fits[id]) continue;
      rows.push(row);
      const sum = sums.get(id) ?? { name: names[id]!, count: 0, total_ps: 0 };
      sum.count += 1;
      sum.total_ps += dur[row]!;
      sums.set(id, sum);
    }
    rows.sort((a, b) => start[a]! - start[b]! || a - b);
    const hits = rows.slice(0, limit).map((row) => ({
      event: row,
      track: track[row]!,
      lane: lane[row]!,
      start_ps: start[row]!,
      dur_ps: dur[row]!,
    }));
    const found = [...sums.values()].sort((a, b) => b.total_ps - a.total_ps).slice(0, limit);
    return Promise.resolve({ total: rows.length, names: found, hits });
  }

  range({ from, to }: Window, tracks: number[] | null): Promise<RangeResult> {
    const { start, name, names, kind, track, parent } = this.events;
    const wanted = tracks && new Set(tracks);
    const rows = new Map<string, RangeResult["rows"][number]>();
    const of = (row: number) => {
      const key = `${name[row]}/${kind[row]}`;
      let sum = rows.get(key);
      if (!sum) {
        const about = this.timeline.kinds[kind[row]!];
        const what = { kind: about?.name ?? "", category: about?.category ?? null };
        sum = { name: names[name[row]!]!, ...what, count: 0, total_ps: 0, self_ps: 0 };
        rows.set(key, sum);
      }
      return sum;
    };
    for (let row = 0; row < start.length; row += 1) {
      if (wanted && !wanted.has(track[row]!)) continue;
      const begins = start[row]! >= from && start[row]! < to;
      const part = Math.min(this.end(row), to) - Math.max(start[row]!, from);
      if (!begins && part <= 0) continue;
      const sum = of(row);
      sum.count += 1;
      sum.total_ps += Math.max(part, 0);
      sum.self_ps += Math.max(part, 0);
      if (parent[row]! >= 0) of(parent[row]!).self_ps -= Math.max(part, 0);
    }
    const found = [...rows.values()].filter((it) => it.count > 0);
    for (const it of found) it.self_ps = Math.max(it.self_ps, 0);
    found.sort((a, b) => b.self_ps - a.self_ps || b.total_ps - a.total_ps);
    return Promise.resolve({
      rows: found,
      count: found.reduce((sum, it) => sum + it.count, 0),
    });
  }

  event(id: number): Promise<EventDetails> {
    const { start, dur, name, names, kind, track, lane, parent } = this.events;
    if (!(id in start)) return Promise.reject(new Error(`there is no event ${id} in this file`));
    const ref = (row: number): EventRef => ({
      event: row,
      name: names[name[row]!]!,
      start_ps: start[row]!,
      dur_ps: dur[row]!,
    });
    const ancestors: EventRef[] = [];
    for (let row = parent[id]!; row >= 0; row = parent[row]!) ancestors.push(ref(row));
    const about = this.timeline.kinds[kind[id]!];
    return Promise.resolve({
      ...ref(id),
      kind: about?.name ?? "",
      category: about?.category ?? null,
      track: track[id]!,
      lane: lane[id]!,
      self_ps: this.ownTime(id),
      parent: parent[id]! >= 0 ? parent[id]! : null,
      step: this.stepAt(start[id]!, track[id]!),
      op: null,
      hlo_op: null,
      hlo_module: null,
      hlo: null,
      source: null,
      args: this.args(id),
      ancestors,
      causes: this.linked(id, this.edges.to, this.edges.from, ref),
      effects: this.linked(id, this.edges.from, this.edges.to, ref),
      same_name: this.sameName(id),
    });
  }

  private ownTime(id: number): number {
    const { start, dur, parent, track } = this.events;
    let own = dur[id]!;
    for (let row = id + 1; track[row] === track[id] && start[row]! < this.end(id); row += 1) {
      if (parent[row] === id) own -= dur[row]!;
    }
    return Math.max(own, 0);
  }

  private linked(
    id: number,
    here: ArrayLike<number>,
    there: ArrayLike<number>,
    ref: (row: number) => EventRef,
  ): EventLink[] {
    const found: EventLink[] = [];
    for (let at = 0; at < here.length; at += 1) {
      if (here[at] !== id) continue;
      const row = there[at]!;
      const place = { track: this.events.track[row]!, lane: this.events.lane[row]! };
      found.push({ ...ref(row), ...place, kind: this.edges.kind[at]! });
    }
    return found;
  }

  private hostOf(track: number): number {
    const it = this.timeline.tracks.find((of) => of.id === track);
    return it?.parent === null || it === undefined ? track : this.hostOf(it.parent);
  }

  private stepAt(time: number, track: number): number | null {
    const host = this.hostOf(track);
    const inside = this.timeline.steps.find(
      (it) => it.host === host && it.start_ps <= time && time < it.start_ps + it.dur_ps,
    );
    return inside?.step ?? null;
  }

  private sameName(id: number): EventDetails["same_name"] {
    const { start, dur, name, track } = this.events;
    const kinds = new Map(this.timeline.tracks.map((it) => [it.id, it.kind]));
    const durs: number[] = [];
    const steps = new Map<number, { step: number; count: number; total_ps: number }>();
    for (let row = 0; row < start.length; row += 1) {
      if (name[row] !== name[id] || kinds.get(track[row]!) !== kinds.get(track[id]!)) continue;
      durs.push(dur[row]!);
      const step = this.stepAt(start[row]!, track[row]!);
      if (step === null) continue;
      const sum = steps.get(step) ?? { step, count: 0, total_ps: 0 };
      sum.count += 1;
      sum.total_ps += dur[row]!;
      steps.set(step, sum);
    }
    durs.sort((a, b) => a - b);
    const [min, max] = [durs[0]!, durs.at(-1)!];
    const bars = max > min ? BARS : 1;
    const edges = Array.from({ length: bars + 1 }, (_, it) => min + ((max - min) * it) / bars);
    const counts = new Array<number>(bars).fill(0);
    for (const it of durs) {
      const bar = max > min ? Math.floor(((it - min) / (max - min)) * bars) : 0;
      counts[Math.min(bar, bars - 1)]! += 1;
    }
    return {
      count: durs.length,
      total_ps: durs.reduce((a, b) => a + b, 0),
      min_ps: min,
      median_ps: durs[durs.length >> 1]!,
      max_ps: max,
      per_step: [...steps.values()].sort((a, b) => a.step - b.step),
      histogram: { edges_ps: edges, counts },
      sampled: false,
    };
  }

  places(events: number[]): Promise<EventPlace[]> {
    const { start, dur, track } = this.events;
    const known = events.filter((it) => it in start);
    return Promise.resolve(
      known.map((event) => ({
        event,
        track: track[event]!,
        start_ps: start[event]!,
        dur_ps: dur[event]!,
      })),
    );
  }
}

interface Merged {
  count: number;
  total: number;
  from?: number;
  to?: number;
}

/** The spans of one track in one tile, as they are cut. */
class Spans {
  readonly begin: number;
  readonly end: number;
  /** Length of a cell. */
  readonly cell: number;
  private readonly rows: {
    lane: number;
    row: number;
    left: number;
    right: number;
    count: number;
    total: number;
    named: boolean;
  }[] = [];

  constructor(
    private readonly events: EventColumns,
    level: number,
    tile: number,
  ) {
    const length = tileLength(level);
    this.begin = tile * length;
    this.end = this.begin + length;
    this.cell = tileLength(level - CELL_BITS);
  }

  get length(): number {
    return this.rows.length;
  }

  push(lane: number, row: number, merged?: Merged): void {
    const start = this.events.start[row]!;
    const dur = Math.max(this.events.dur[row]!, 0);
    this.rows.push({
      lane,
      row,
      left: this.fraction(merged?.from ?? start),
      right: this.fraction(merged?.to ?? start + dur),
      count: merged?.count ?? 1,
      total: merged?.total ?? dur,
      named: dur >= this.cell * LABEL_CELLS,
    });
  }

  sortFrom(first: number): void {
    if (this.rows.length - first < 2) return;
    const tail = this.rows.splice(first).sort((a, b) => a.left - b.left);
    this.rows.push(...tail);
  }

  private fraction(time: number): number {
    const part = Math.floor(((time - this.begin) / (this.end - this.begin)) * 2 ** 32);
    return Math.min(Math.max(part, 0), OPEN_END);
  }

  columns(track: number): TrackTile {
    const { rows, events } = this;
    const words = (of: (it: (typeof rows)[number]) => number) => Uint32Array.from(rows, of);
    return {
      track,
      total: Float64Array.from(rows, (it) => it.total),
      left: words((it) => it.left),
      right: words((it) => it.right),
      count: words((it) => it.count),
      event: words((it) => it.row),
      name: words((it) => (it.named ? events.name[it.row]! : NO_NAME)),
      lane: Uint8Array.from(rows, (it) => it.lane),
      kind: Uint8Array.from(rows, (it) => events.kind[it.row]!),
      names: events.names,
    };
  }
}

/** How many of the first `n` places come before. */
function lowerBound(n: number, before: (place: number) => boolean): number {
  let [low, high] = [0, n];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (before(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
