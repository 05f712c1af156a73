// What the timeline draws, cut into tiles, wherever it comes from; the rules are in docs/api.md.

import type { EventDetails, RangeResult, SearchResult, Timeline } from "../data/types";

/** Cells of a tile are 2^10; a tile of level K is 2^K ps long. */
export const CELL_BITS = 10;
export const CELLS = 1 << CELL_BITS;
export const LOWEST_LEVEL = CELL_BITS;

/** The right end of a span that reaches its tile's end or goes on. */
export const OPEN_END = 0xffff_ffff;
/** In place of a name that is too narrow to be written. */
export const NO_NAME = 0xffff_ffff;
/** A span must be so many cells wide for its name to be told. */
export const LABEL_CELLS = 16;

export const tileLength = (level: number): number => 2 ** level;

/** One track of one tile, as columns; sorted by lane, then start. */
export interface TrackTile {
  track: number;
  total: Float64Array;
  left: Uint32Array;
  right: Uint32Array;
  count: Uint32Array;
  event: Uint32Array;
  /** Into `names`. */
  name: Uint32Array;
  lane: Uint8Array;
  kind: Uint8Array;
  names: string[];
}

export interface Tile {
  level: number;
  tile: number;
  tracks: TrackTile[];
}

/** `cell, min, max, last`, only of cells with a sample. */
export type CounterCell = [number, number, number, number];

export interface CounterTile {
  track: number;
  cells: CounterCell[];
}

/** Where an event lies, but for its lane. */
export interface EventPlace {
  event: number;
  track: number;
  start_ps: number;
  dur_ps: number;
}

export interface Window {
  from: number;
  to: number;
}

export interface TileSource {
  overview(): Promise<Timeline>;
  tile(level: number, tile: number, tracks: number[], signal?: AbortSignal): Promise<Tile>;
  counters(
    level: number,
    tile: number,
    tracks: number[],
    signal?: AbortSignal,
  ): Promise<CounterTile[]>;
  search(text: string, limit: number, signal?: AbortSignal): Promise<SearchResult>;
  range(window: Window, tracks: number[] | null, signal?: AbortSignal): Promise<RangeResult>;
  event(id: number, signal?: AbortSignal): Promise<EventDetails>;
  /** Many events at once, for those that a link lights. */
  places(events: number[], signal?: AbortSignal): Promise<EventPlace[]>;
}
