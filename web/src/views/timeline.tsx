// Every event of the trace, at any zoom; steps are the ruler.

import { useEffect, useState } from "preact/hooks";
import { client } from "../data/store";
import type { Timeline } from "../data/types";
import { Empty, Failed } from "../parts/empty";
import { ServerTiles } from "../timeline/server-tiles";
import { Workspace } from "../timeline/workspace";
import type { TileSource } from "../timeline/tiles";
import { hasContent } from "../timeline/tracks";
import "./timeline.css";
import type { ViewProps } from ".";

export default function TimelineView({ run }: ViewProps) {
  const [opened, setOpened] = useState<{ source: TileSource; timeline: Timeline } | null>(null);
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    let wanted = true;
    const source = client.tiles?.(run) ?? new ServerTiles(client, run);
    source.overview().then(
      (timeline) => wanted && setOpened({ source, timeline }),
      (it: Error) => wanted && setError(it),
    );
    return () => {
      wanted = false;
    };
  }, [run]);
  if (error) return <Failed error={error} />;
  if (!opened) return <Skeleton />;
  if (!opened.timeline.tracks.some(hasContent)) {
    return (
      <div class="pad">
        <Empty command="strobe run -- python train.py">
          This run has no events: nothing was recorded while the profiler was on. Profile it with
        </Empty>
      </div>
    );
  }
  return <Workspace run={run} source={opened.source} timeline={opened.timeline} />;
}

/** The frame in its final sizes. */
function Skeleton() {
  return (
    <div class="tl" aria-busy="true">
      <div class="tl-bar" />
      <div class="tl-body">
        <div class="tl-stage">
          <div class="tl-corner" />
        </div>
      </div>
      <div class="tl-foot" />
    </div>
  );
}
