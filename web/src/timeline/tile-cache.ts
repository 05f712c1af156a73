// Blocks that are there, those on their way, and which to ask for next.

import { Block } from "./block";
import { tileLength, type CounterCell, type TileSource } from "./tiles";
import type { Track } from "../data/types";

const MOST_BYTES = 64e6;
const MOST_IN_FLIGHT = 6;
const TRACKS_AT_ONCE = 48;
/** What could not be had is not asked for again at once. */
const RETRY_MS = 4000;

/** Samples of a counter in one tile. */
export interface CounterBlock {
  begin: number;
  length: number;
  cells: CounterCell[];
}

interface Slot {
  blocks: Map<number, Block>;
  counters: Map<number, CounterBlock>;
  bytes: number;
  used: number;
}

interface Flight {
  level: number;
  tile: number;
  counters: boolean;
  tracks: Set<number>;
  abort: AbortController;
}

/** What a frame needs. */
export interface Need {
  level: number;
  from: number;
  to: number;
  tracks: Track[];
}

export class TileCache {
  private readonly levels: (Map<number, Slot> | undefined)[] = [];
  private readonly flights = new Set<Flight>();
  private bytes = 0;
  private clock = 0;
  private failedAt = -Infinity;
  private need: Need | null = null;

  constructor(
    private readonly source: TileSource,
    private readonly bounds: { from: number; to: number },
    private readonly arrived: () => void,
    private readonly forget: (block: Block) => void,
    /** Null once answers come again. */
    private readonly failed: (error: Error | null) => void,
  ) {}

  get idle(): boolean {
    return this.flights.size === 0;
  }

  get heldBytes(): number {
    return this.bytes;
  }

  /** Called once a frame: what is used from now on is younger. */
  tick(): void {
    this.clock += 1;
  }

  private slot(level: number, tile: number): Slot | undefined {
    return this.levels[level]?.get(tile);
  }

  block(level: number, tile: number, track: number): Block | undefined {
    const slot = this.slot(level, tile);
    const block = slot?.blocks.get(track);
    if (block) slot!.used = this.clock;
    return block;
  }

  counter(level: number, tile: number, track: number): CounterBlock | undefined {
    const slot = this.slot(level, tile);
    const block = slot?.counters.get(track);
    if (block) slot!.used = this.clock;
    return block;
  }

  /** The level at which one or two tiles hold the whole trace. */
  get topLevel(): number {
    const whole = Math.max(this.bounds.to - this.bounds.from, 1024);
    return Math.ceil(Math.log2(whole));
  }

  /** Asks for what is missing, the middle first; stops what nobody waits for any more. */
  update(need: Need): void {
    this.need = need;
    const { level, from, to } = need;
    for (const it of this.flights) {
      const begin = it.tile * tileLength(it.level);
      const margin = tileLength(it.level);
      const seen = begin < to + margin && begin + margin > from - margin;
      const near = Math.abs(it.level - level) <= 1 || it.level === this.topLevel;
      if (!seen || !near) {
        it.abort.abort();
        this.flights.delete(it);
      }
    }
    this.ask();
  }

  private ask(): void {
    const { need } = this;
    if (!need || performance.now() - this.failedAt < RETRY_MS) return;
    const { level, from, to } = need;
    const middle = (from + to) / 2;
    const span = to - from;
    // The whole trace first, so that there always is something to draw.
    const top = Math.max(this.topLevel, level);
    if (!this.askFor(top, this.bounds.from, this.bounds.to, middle, need.tracks)) return;
    if (!this.askFor(level, from, to, middle, need.tracks)) return;
    if (this.flights.size > 0) return;
    // Nothing is missing: the neighbourhood, one level out, one level in.
    if (!this.askFor(level, from - span / 2, to + span / 2, middle, need.tracks)) return;
    if (!this.askFor(level + 1, from - span / 2, to + span / 2, middle, need.tracks)) return;
    if (level > 10) this.askFor(level - 1, from + span / 4, to - span / 4, middle, need.tracks);
  }

  /** False where no more can be asked for at once. */
  private askFor(
    level: number,
    from: number,
    to: number,
    middle: number,
    tracks: Track[],
  ): boolean {
    const length = tileLength(level);
    const first = Math.floor(Math.max(from, this.bounds.from) / length);
    const last = Math.floor(Math.min(to, this.bounds.to) / length);
    const tiles: number[] = [];
    for (let tile = first; tile <= last; tile += 1) tiles.push(tile);
    const distance = (tile: number) => Math.abs((tile + 0.5) * length - middle);
    tiles.sort((a, b) => distance(a) - distance(b));
    for (const tile of tiles) {
      for (const counters of [false, true]) {
        const missing = this.missing(level, tile, tracks, counters);
        for (let at = 0; at < missing.length; at += TRACKS_AT_ONCE) {
          if (this.flights.size >= MOST_IN_FLIGHT) return false;
          this.fetch(level, tile, missing.slice(at, at + TRACKS_AT_ONCE), counters);
        }
      }
    }
    return true;
  }

  private missing(level: number, tile: number, tracks: Track[], counters: boolean): number[] {
    const begin = tile * tileLength(level);
    const end = begin + tileLength(level);
    const slot = this.slot(level, tile);
    const have = counters ? slot?.counters : slot?.blocks;
    const missing: number[] = [];
    for (const it of tracks) {
      const fits = counters ? it.counter !== undefined : it.n_events > 0;
      if (!fits || have?.has(it.id)) continue;
      if ((it.first_ps ?? Infinity) >= end || (it.last_ps ?? -Infinity) < begin) continue;
      if (!this.isFlying(level, tile, counters, it.id)) missing.push(it.id);
    }
    return missing;
  }

  private isFlying(level: number, tile: number, counters: boolean, track: number): boolean {
    for (const it of this.flights) {
      if (it.level === level && it.tile === tile && it.counters === counters) {
        if (it.tracks.has(track)) return true;
      }
    }
    return false;
  }

  private fetch(level: number, tile: number, tracks: number[], counters: boolean): void {
    const abort = new AbortController();
    const flight: Flight = { level, tile, counters, tracks: new Set(tracks), abort };
    this.flights.add(flight);
    const answer = counters
      ? this.source
          .counters(level, tile, tracks, abort.signal)
          .then((found) => this.keepCounters(level, tile, found))
      : this.source
          .tile(level, tile, tracks, abort.signal)
          .then((found) =>
            found.tracks.forEach((it) => this.keep(level, tile, new Block(level, tile, it))),
          );
    answer.then(
      () => {
        this.failed(null);
        this.landed(flight);
      },
      (error: Error) => {
        if (abort.signal.aborted) return;
        this.failedAt = performance.now();
        this.failed(error);
        setTimeout(() => this.ask(), RETRY_MS);
        this.landed(flight);
      },
    );
  }

  private landed(flight: Flight): void {
    this.flights.delete(flight);
    this.ask();
    this.evict();
    this.arrived();
  }

  private slotFor(level: number, tile: number): Slot {
    const tiles = (this.levels[level] ??= new Map());
    let slot = tiles.get(tile);
    if (!slot) {
      slot = { blocks: new Map(), counters: new Map(), bytes: 0, used: this.clock };
      tiles.set(tile, slot);
    }
    slot.used = this.clock;
    return slot;
  }

  private keep(level: number, tile: number, block: Block): void {
    const slot = this.slotFor(level, tile);
    slot.blocks.set(block.spans.track, block);
    slot.bytes += block.bytes;
    this.bytes += block.bytes;
  }

  private keepCounters(
    level: number,
    tile: number,
    found: { track: number; cells: CounterCell[] }[],
  ): void {
    const slot = this.slotFor(level, tile);
    const length = tileLength(level);
    for (const { track, cells } of found) {
      slot.counters.set(track, { begin: tile * length, length, cells });
      const bytes = 64 + cells.length * 64;
      slot.bytes += bytes;
      this.bytes += bytes;
    }
  }

  /** Drops whole tiles, those first that were not drawn for longest. */
  private evict(): void {
    if (this.bytes <= MOST_BYTES) return;
    const all: { level: number; tile: number; slot: Slot }[] = [];
    this.levels.forEach((tiles, level) => {
      if (level >= this.topLevel) return;
      tiles?.forEach((slot, tile) => all.push({ level, tile, slot }));
    });
    all.sort((a, b) => a.slot.used - b.slot.used);
    for (const { level, tile, slot } of all) {
      if (this.bytes <= MOST_BYTES * 0.8 || slot.used === this.clock) return;
      for (const block of slot.blocks.values()) this.forget(block);
      this.bytes -= slot.bytes;
      this.levels[level]!.delete(tile);
    }
  }

  close(): void {
    for (const it of this.flights) it.abort.abort();
    this.flights.clear();
    for (const tiles of this.levels) {
      tiles?.forEach((slot) => slot.blocks.forEach((block) => this.forget(block)));
    }
    this.levels.length = 0;
  }
}
