// The names of the rows, beside the canvas: only those that are seen are elements.

import type { RefObject } from "preact";
import { thousands } from "../format";
import type { Track } from "../data/types";
import type { Model } from "./model";
import { RULER } from "./ruler";
import { scaleOf } from "./scene";
import { Edge, HEAD_WIDTH } from "./edge";
import type { Row } from "./tracks";
import { counterText } from "./units";

interface HeadersProps {
  model: Model;
  scroller: RefObject<HTMLDivElement | null>;
  onScroll: (top: number) => void;
}

export function Headers({ model, scroller, onScroll }: HeadersProps) {
  const { pinned, pinnedHeight, height, found } = model.rows.value;
  const shown = model.stage?.shown.value ?? [];
  return (
    <>
      {pinned.length > 0 && (
        <div class="tl-pinned" style={{ top: `${RULER}px`, height: `${pinnedHeight}px` }}>
          {pinned.map((it) => (
            <Header key={it.key} row={it} model={model} />
          ))}
        </div>
      )}
      <div
        class="tl-rows"
        ref={scroller}
        style={{ top: `${RULER + pinnedHeight}px` }}
        onScroll={(it) => onScroll(it.currentTarget.scrollTop)}
      >
        <div class="tl-all" style={{ height: `${height}px` }}>
          {shown.map((it) => (
            <Header key={it.key} row={it} model={model} />
          ))}
        </div>
        {found === 0 && model.filter.value && (
          <p class="tl-none faint">No track is called {model.filter.value}.</p>
        )}
      </div>
      <div class="tl-head-edge">
        <Edge size={HEAD_WIDTH} label="Width of the names" grows="right" />
      </div>
    </>
  );
}

function Header({ row, model }: { row: Row; model: Model }) {
  const { group, track } = row;
  const place = {
    top: `${row.top}px`,
    height: `${row.height}px`,
    paddingLeft: `${8 + row.depth * 12}px`,
  };
  if (group) {
    return (
      <div class="tl-head tl-group" style={place}>
        <button
          class="tl-fold"
          aria-expanded={group.open}
          onClick={() => model.toggle(group.key)}
          title={group.title}
        >
          <Chevron open={group.open} />
          <span class="tl-name">{group.title}</span>
          <span class="faint">{group.about}</span>
        </button>
      </div>
    );
  }
  if (!track) return null;
  const pinned = model.pinned.value.includes(track.id);
  const name = model.titleOf(track.id);
  return (
    <div class={`tl-head ${track.driving ? "tl-driving" : ""}`} style={place}>
      <Name title={about(track)}>{name}</Name>
      {track.counter && track.n_events === 0 ? (
        <Scale track={track} />
      ) : (
        <span class="tl-tools">
          {track.lanes > 1 && (
            <button
              aria-label={`${row.squeezed ? "Expand" : "Squeeze"} ${name}`}
              title={row.squeezed ? "Expand" : "Squeeze"}
              onClick={() => model.resizeTrack(track.id)}
            >
              <svg viewBox="0 0 12 12" aria-hidden="true">
                <path
                  d={row.squeezed ? "M2 4l4-3 4 3M2 8l4 3 4-3" : "M2 1l4 3 4-3M2 11l4-3 4 3"}
                  fill="none"
                  stroke="currentColor"
                />
              </svg>
            </button>
          )}
          <PinButton pinned={pinned} name={name} onClick={() => model.pin(track.id)} />
        </span>
      )}
    </div>
  );
}

/** A long name loses its middle: what tells it from others of a pool is at its end. */
function Name({ title, children }: { title: string; children: string }) {
  const [, start, end] = /^(.*)( #\d+)$/.exec(children) ?? [children, children, ""];
  return (
    <span class="tl-name" title={title}>
      <span class="tl-start">{start}</span>
      {end}
    </span>
  );
}

function PinButton(props: { pinned: boolean; name: string; onClick: () => void }) {
  const title = props.pinned ? "Unpin" : "Pin to the top";
  return (
    <button
      class={props.pinned ? "tl-on" : ""}
      aria-label={`${title}: ${props.name}`}
      title={title}
      onClick={props.onClick}
    >
      <svg viewBox="0 0 12 12" aria-hidden="true">
        <path d="M4 1h4l-.5 4L9 7H3l1.5-2zM6 7v4" fill="none" stroke="currentColor" />
      </svg>
    </button>
  );
}

function Scale({ track }: { track: Track }) {
  const { min, max } = scaleOf(track);
  return (
    <span class="tl-scale faint">
      <span>{counterText(track.name, max)}</span>
      <span>{counterText(track.name, min)}</span>
    </span>
  );
}

function Chevron({ open }: { open: boolean }) {
  return (
    <svg viewBox="0 0 12 12" aria-hidden="true">
      <path d={open ? "M2 4l4 4 4-4" : "M4 2l4 4-4 4"} fill="none" stroke="currentColor" />
    </svg>
  );
}

const about = (it: Track): string =>
  `${it.name}\n${it.kind}${it.driving ? ", drives the steps" : ""}, ${thousands(it.n_events)} events`;
