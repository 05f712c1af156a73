// Tiles from `strobe serve`.

import type { Client } from "../data/client";
import type { EventDetails, RangeResult, SearchResult, SqlResult, Timeline } from "../data/types";
import type { CounterTile, EventPlace, Tile, TileSource, TrackTile, Window } from "./tiles";

const MAGIC = 0x3142_4f54;
const HEADER_BYTES = 24;
/** Bytes of a span in all columns. */
const SPAN_BYTES = 8 + 5 * 4 + 2;

export class ServerTiles implements TileSource {
  private readonly path: string;

  constructor(
    private readonly client: Client,
    run: number,
  ) {
    this.path = `runs/${run}`;
  }

  overview(): Promise<Timeline> {
    return this.client.json(`${this.path}/timeline`);
  }

  async tile(level: number, tile: number, tracks: number[], signal?: AbortSignal): Promise<Tile> {
    const path = `${this.path}/timeline/tiles?level=${level}&tile=${tile}&tracks=${tracks.join(",")}`;
    return decode(await this.client.binary(path, signal));
  }

  counters(
    level: number,
    tile: number,
    tracks: number[],
    signal?: AbortSignal,
  ): Promise<CounterTile[]> {
    return this.client.json(
      `${this.path}/timeline/counters?level=${level}&tile=${tile}&tracks=${tracks.join(",")}`,
      signal,
    );
  }

  search(text: string, limit: number, signal?: AbortSignal): Promise<SearchResult> {
    const query = new URLSearchParams({ q: text, limit: String(limit) });
    return this.client.json(`${this.path}/timeline/search?${query}`, signal);
  }

  range(window: Window, tracks: number[] | null, signal?: AbortSignal): Promise<RangeResult> {
    const { from, to } = window;
    const some = tracks ? `&tracks=${tracks.join(",")}` : "";
    return this.client.json(
      `${this.path}/timeline/range?from=${Math.floor(from)}&to=${Math.ceil(to)}${some}`,
      signal,
    );
  }

  event(id: number, signal?: AbortSignal): Promise<EventDetails> {
    return this.client.json(`${this.path}/events/${id}`, signal);
  }

  async places(events: number[], signal?: AbortSignal): Promise<EventPlace[]> {
    const ids = events.filter(Number.isSafeInteger);
    if (ids.length === 0) return [];
    const query = `select id, track, start_ps, dur_ps from event where id in (${ids.join(",")})`;
    const body = { query, limit: ids.length };
    const found = await this.client.post<SqlResult>(`${this.path}/sql`, body, signal);
    return found.rows.map(([event, track, start_ps, dur_ps]) => ({
      event: Number(event),
      track: Number(track),
      start_ps: Number(start_ps),
      dur_ps: Number(dur_ps),
    }));
  }
}

/** Lays arrays over the answer's columns without copying them. */
export function decode(buffer: ArrayBuffer): Tile {
  const view = new DataView(buffer);
  if (buffer.byteLength < HEADER_BYTES || view.getUint32(0, true) !== MAGIC) {
    throw new Error("the server answered something that is not a tile");
  }
  const level = view.getUint8(4);
  const tile = Number(view.getBigInt64(8, true));
  const nTracks = view.getUint32(16, true);
  const nNames = view.getUint32(20, true);
  const names: string[] = [];
  const tracks: TrackTile[] = [];
  let at = HEADER_BYTES;
  for (let i = 0; i < nTracks; i += 1) {
    const track = view.getUint32(at, true);
    const n = view.getUint32(at + 4, true);
    at += 8;
    const begin = at;
    const total = new Float64Array(buffer, at, n);
    at += n * 8;
    const words = (): Uint32Array => {
      const column = new Uint32Array(buffer, at, n);
      at += n * 4;
      return column;
    };
    const [left, right, count, event, name] = [words(), words(), words(), words(), words()];
    const lane = new Uint8Array(buffer, at, n);
    const kind = new Uint8Array(buffer, at + n, n);
    at = begin + Math.ceil((n * SPAN_BYTES) / 8) * 8;
    tracks.push({ track, total, left, right, count, event, name, lane, kind, names });
  }
  const text = new TextDecoder();
  for (let i = 0; i < nNames; i += 1) {
    const n = view.getUint32(at, true);
    names.push(text.decode(new Uint8Array(buffer, at + 4, n)));
    at += 4 + n;
  }
  return { level, tile, tracks };
}
