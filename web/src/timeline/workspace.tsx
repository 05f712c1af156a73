// The timeline with all that is around it: bar, headers of tracks, panel, footer.

import { useSignalEffect } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { remembered, useReport } from "../data/store";
import { CATEGORIES, type LitEvidence, type Timeline } from "../data/types";
import { categoryName, sentence, thousands, time } from "../format";
import { evidenceOf } from "../parts/evidence";
import { link, route } from "../router";
import { theme } from "../theme";
import { Bar } from "./bar";
import { HEAD_WIDTH } from "./edge";
import { Headers } from "./headers";
import { Help } from "./help";
import { Hover } from "./hover";
import { listen } from "./input";
import { Model } from "./model";
import { NoteLayer } from "./note-layer";
import { Panel } from "./panel";
import { Stage } from "./stage";
import type { TileSource } from "./tiles";

/** Of the address: the fallback can be asked for, and benchmarks look inside. */
const asked = (name: string): boolean =>
  new URLSearchParams(location.search).has(name) || route.peek().params[name] !== undefined;

interface WorkspaceProps {
  run: number;
  source: TileSource;
  timeline: Timeline;
}

export function Workspace({ run, source, timeline }: WorkspaceProps) {
  const model = useMemo(() => {
    const ask = (id: string) => remembered<LitEvidence>(`runs/${run}/evidence/${id}`);
    return new Model(source, timeline, ask);
  }, [run, source, timeline]);
  const canvas = useRef<HTMLCanvasElement>(null);
  const area = useRef<HTMLDivElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  /** A driver may take its context back: then all is drawn anew on another canvas. */
  const [lost, setLost] = useState(0);

  useEffect(() => {
    const stage = new Stage(canvas.current!, source, timeline, route.peek().params["painter"]);
    const scroll = scroller.current!;
    // Sizes are told once more after the view is left, when the references are gone.
    const room = canvas.current!.parentElement!;
    model.scrollTo = (top) => {
      scroll.scrollTop = top;
      stage.scrolledTo(scroll.scrollTop);
    };
    const measure = () => {
      const box = room.getBoundingClientRect();
      stage.resize(box.width, box.height);
    };
    measure();
    model.open(stage);
    const sizes = new ResizeObserver(measure);
    sizes.observe(room);
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
      <LitBar model={model} run={run} />
      <div class="tl-body">
        <div
          class="tl-stage"
          style={{ "--head": `${HEAD_WIDTH.value}px` }}
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
          <div class="tl-over">
            <NoteLayer model={model} />
          </div>
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

/** What is lit, in the words of the finding. */
function LitBar({ model, run }: { model: Model; run: number }) {
  const { value: report } = useReport(run);
  const id = model.evidence.value;
  const lit = model.litEvidence.value;
  const found = id !== null && report ? evidenceOf(report.findings, id) : null;
  const n = lit ? lit.n_events : model.lit.value.length;
  if (!lit && n === 0) return null;
  const where = lit && lit.step !== null ? ` of step ${lit.step}` : "";
  const what =
    n > 0
      ? `${thousands(n)} ${n === 1 ? "event" : "events"} lit`
      : `${time(lit?.lit_ps ?? 0)}${where} lit`;
  const beyond = lit && lit.left_out > 0 ? `, ${thousands(lit.left_out)} more left out` : "";
  return (
    <div class="tl-lit" role="note" aria-label="What is lit">
      <span class="tl-said">{found && sentence(found.evidence.text)}</span>
      <span class="faint">
        {what}
        {beyond}
      </span>
      {found && <a href={link("overview", { open: Number(id!.split(".")[0]) + 1 })}>The finding</a>}
      <button title="Stop lighting them  Esc" onClick={() => model.unlight()}>
        Show all<span aria-hidden="true"> ×</span>
      </button>
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
