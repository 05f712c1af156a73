// The timeline with all that is around it: bar, headers of tracks, panel, footer.

import { useSignalEffect } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { CATEGORIES, type Timeline } from "../data/types";
import { categoryName } from "../format";
import { route } from "../router";
import { theme } from "../theme";
import { Bar } from "./bar";
import { Headers } from "./headers";
import { Help } from "./help";
import { Hover } from "./hover";
import { listen } from "./input";
import { Model } from "./model";
import { Panel } from "./panel";
import { Stage } from "./stage";
import type { TileSource } from "./tiles";

/** Of the address: the fallback can be asked for, and benchmarks look inside. */
const asked = (name: string): boolean =>
  new URLSearchParams(location.search).has(name) || route.peek().params[name] !== undefined;

export function Workspace({ source, timeline }: { source: TileSource; timeline: Timeline }) {
  const model = useMemo(() => new Model(source, timeline), [source, timeline]);
  const canvas = useRef<HTMLCanvasElement>(null);
  const area = useRef<HTMLDivElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  /** A driver may take its context back: then all is drawn anew on another canvas. */
  const [lost, setLost] = useState(0);

  useEffect(() => {
    const stage = new Stage(canvas.current!, source, timeline, route.peek().params["painter"]);
    const scroll = scroller.current!;
    model.scrollTo = (top) => {
      scroll.scrollTop = top;
      stage.scrolledTo(scroll.scrollTop);
    };
    const measure = () => {
      const box = canvas.current!.parentElement!.getBoundingClientRect();
      stage.resize(box.width, box.height);
    };
    measure();
    model.open(stage);
    const sizes = new ResizeObserver(measure);
    sizes.observe(canvas.current!.parentElement!);
    const deaf = listen(area.current!, stage, model);
    const again = () => setLost((n) => n + 1);
    stage.canvas.addEventListener("webglcontextlost", again);
    if (asked("bench")) {
      Object.assign(window, {
        __strobe: {
          timeline: {
            get ready() {
              return stage.ready;
            },
            get idle() {
              return stage.idle;
            },
            get bytes() {
              return stage.heldBytes;
            },
            get window() {
              return stage.window;
            },
            painter: stage.painter.name,
            view: (from: number, to: number) => stage.jump(from, to),
          },
        },
      });
    }
    return () => {
      deaf();
      stage.canvas.removeEventListener("webglcontextlost", again);
      sizes.disconnect();
      model.close();
      stage.close();
    };
  }, [model, source, timeline, lost]);

  useSignalEffect(() => {
    void theme.value;
    model.stage?.retheme();
  });
  useSignalEffect(() => {
    const { view, params } = route.value;
    if (view === "timeline") model.follow(params);
  });

  return (
    <div class="tl">
      <h1 class="visually-hidden">Timeline</h1>
      <Bar model={model} />
      <div class="tl-body">
        <div
          class="tl-stage"
          ref={area}
          role="application"
          tabIndex={0}
          aria-label="Timeline. Press question mark for its keys."
        >
          <Corner model={model} />
          <div class="tl-canvas">
            <canvas
              key={lost}
              ref={canvas}
              role="img"
              aria-label="Events over time, a row for each thread and stream"
            />
          </div>
          <Headers
            model={model}
            scroller={scroller}
            onScroll={(top) => model.stage?.scrolledTo(top)}
          />
          <Hover model={model} />
        </div>
        <Panel model={model} />
      </div>
      <Foot model={model} />
      <div class="visually-hidden" role="status" aria-live="polite">
        {model.said}
      </div>
      <Help model={model} />
    </div>
  );
}

/** What times are counted from. */
function Corner({ model }: { model: Model }) {
  const text = model.stage?.origin.value ?? "";
  return (
    <div class="tl-corner">
      <div class="faint">Steps</div>
      <div class="faint" title={text}>
        {text}
      </div>
    </div>
  );
}

function Foot({ model }: { model: Model }) {
  const used = new Set(model.timeline.kinds.map((it) => it.category));
  const error = model.stage?.error.value;
  return (
    <div class="tl-foot">
      {CATEGORIES.filter((it) => used.has(it)).map((it) => (
        <span key={it}>
          <i class="swatch" style={{ backgroundColor: `var(--${it})` }} />
          {categoryName(it)}
        </span>
      ))}
      {error && (
        <span class="failed" role="alert">
          {error.message}
        </span>
      )}
    </div>
  );
}
