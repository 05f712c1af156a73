// What an exported file carries inside: the answers a server would give, and raw events.

import { LocalTiles, type EventColumns, type Samples } from "../timeline/local-tiles";
import type { TileSource } from "../timeline/tiles";
import { ApiError, type Client } from "./client";
import { localMean } from "./local-mean";
import type { TableOf, Timeline } from "./types";

interface Embedded {
  answers: Record<string, unknown>;
  timeline: {
    overview: Timeline;
    events: Record<"start" | "dur" | "track" | "lane" | "kind" | "name" | "parent", string>;
    names: string[];
    edges: { from: string; to: string; kind: string[] };
    args: Record<string, [string, string | number][]>;
    samples: Samples[];
    left_out: number;
  };
}

/** Base64 of gzipped JSON, as `crates/server/src/export.rs` writes it. */
export async function unpacked(text: string): Promise<Embedded> {
  const zipped = new Blob([bytes(text.trim())]).stream();
  return new Response(zipped.pipeThrough(new DecompressionStream("gzip"))).json();
}

function bytes(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (it) => it.charCodeAt(0));
}

export class EmbeddedClient implements Client {
  readonly live = false;
  private readonly source: TileSource;

  constructor(private readonly data: Embedded) {
    this.source = localTiles(data.timeline);
  }

  json<T>(path: string): Promise<T> {
    const [name, query] = path.split("?");
    if (name === "runs/0/mean_step") {
      const times = this.data.answers["runs/0/tables/step_time"] as TableOf<"step_time">;
      return Promise.resolve(localMean(times, new URLSearchParams(query)) as T);
    }
    const answer = this.data.answers[name!];
    return answer === undefined ? missing() : Promise.resolve(answer as T);
  }

  binary(): Promise<ArrayBuffer> {
    return missing();
  }

  post<T>(): Promise<T> {
    return missing();
  }

  tiles(): TileSource {
    return this.source;
  }
}

function missing(): Promise<never> {
  return Promise.reject(
    new ApiError(404, "this is not part of the exported file", "strobe serve PATH shows all of it"),
  );
}

function localTiles({ overview, events, names, edges, args, samples }: Embedded["timeline"]) {
  const floats = (it: string) => new Float64Array(bytes(it).buffer);
  // A parent that is none is 2^32 − 1, which is −1 here.
  const integers = (it: string) => new Int32Array(bytes(it).buffer);
  const columns: EventColumns = {
    start: floats(events.start),
    dur: floats(events.dur),
    track: integers(events.track),
    lane: bytes(events.lane),
    kind: bytes(events.kind),
    name: integers(events.name),
    parent: integers(events.parent),
    names,
  };
  return new LocalTiles(
    overview,
    columns,
    samples,
    { from: integers(edges.from), to: integers(edges.to), kind: edges.kind },
    (event) => args[event] ?? [],
  );
}
