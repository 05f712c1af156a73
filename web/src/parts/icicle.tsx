// Name scopes from the top down: as wide as their time, inner ones below. A click zooms in.

import { useMemo, useRef, useState } from "preact/hooks";
import type { ScopeTime } from "../data/tables";
import { percent, time } from "../format";
import { around, lastPart, places, ROOT, scopeTime, type Side } from "./scopes";
import { useWidth } from "./width";
import "./icicle.css";

const LINE = 22;
/** Narrower ones are left out of the drawing: nobody could point at them. */
const NARROWEST = 3;

export function Icicle(props: {
  rows: ScopeTime[];
  side: Side;
  colour: string;
  zoom: string;
  onZoom: (scope: string) => void;
  levels?: number;
}) {
  const { rows, side, zoom, onZoom, levels = 7 } = props;
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const byScope = useMemo(() => new Map(rows.map((it) => [it.scope, it])), [rows]);
  const all = useMemo(() => places(rows, side, zoom), [rows, side, zoom]);
  const whole = byScope.get(ROOT);
  const total = whole ? scopeTime(whole, side) : 0;
  const drawn = useMemo(
    () =>
      all.filter(
        (it) => it.level > 0 && it.level <= levels && (it.right - it.left) * width >= NARROWEST,
      ),
    [all, width, levels],
  );
  // As high as the whole tree, so that nothing below moves while zooming.
  const depth = useMemo(
    () => places(rows, side, ROOT).reduce((most, it) => Math.max(most, it.level), 0),
    [rows, side],
  );
  const [focused, setFocused] = useState<string | null>(null);
  const reachable = drawn.some((it) => it.scope === focused) ? focused : drawn[0]?.scope;

  const onKeyDown = (event: KeyboardEvent) => {
    const at = drawn.findIndex((it) => it.scope === reachable);
    const here = drawn[at];
    if (!here) return;
    const same = drawn.filter((it) => it.level === here.level).sort((a, b) => a.left - b.left);
    const place = same.indexOf(here);
    const next = {
      ArrowLeft: same[place - 1],
      ArrowRight: same[place + 1],
      ArrowUp: drawn.find((it) => it.scope === here.parent),
      ArrowDown: drawn.find((it) => it.parent === here.scope),
    }[event.key];
    if (next) {
      setFocused(next.scope);
      frame.current
        ?.querySelector<HTMLElement>(`[data-scope="${CSS.escape(next.scope)}"]`)
        ?.focus();
    } else if (event.key === "Backspace" && zoom !== ROOT) {
      onZoom(byScope.get(zoom)?.parent ?? ROOT);
    } else if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
  };

  const path = around(zoom, byScope);
  return (
    <section class="icicle" aria-label="Time by name scope">
      <nav class="crumbs" aria-label="Scope">
        {path.map((scope, at) => {
          const row = byScope.get(scope)!;
          const text = scope === ROOT ? "Name scopes" : lastPart(scope);
          return (
            <span key={scope}>
              {at > 0 && <span class="faint"> / </span>}
              {at < path.length - 1 ? (
                <button class="crumb" onClick={() => onZoom(scope)}>
                  {text}
                </button>
              ) : (
                <b>{text}</b>
              )}
              {at === path.length - 1 && (
                <span class="faint">
                  {" "}
                  {time(scopeTime(row, side))}
                  {scope !== ROOT && total > 0 && `, ${percent(scopeTime(row, side) / total)}`}
                </span>
              )}
            </span>
          );
        })}
      </nav>
      <div
        ref={frame}
        class="icicle-frame"
        role="group"
        aria-label="Scopes: arrow keys move, Enter zooms in, Backspace out"
        style={{ height: `${Math.min(depth, levels) * LINE}px` }}
        onKeyDown={onKeyDown}
      >
        {drawn.map((it) => {
          const wide = (it.right - it.left) * width;
          const share = percent(it.ps / total);
          return (
            <button
              key={it.scope}
              data-scope={it.scope}
              tabIndex={it.scope === reachable ? 0 : -1}
              aria-label={`${it.name} ${share}: ${time(it.ps)}, ${it.scope}`}
              title={`${it.scope}\n${time(it.ps)}, ${share} of all`}
              onFocus={() => setFocused(it.scope)}
              onClick={() => onZoom(it.scope)}
              class={`${it.inner ? "" : "leaf"} ${wide < 16 ? "narrow" : ""}`}
              style={{
                "--colour": props.colour,
                left: `${it.left * 100}%`,
                width: `calc(${(it.right - it.left) * 100}% - 1px)`,
                top: `${(it.level - 1) * LINE}px`,
              }}
            >
              {wide > 28 && <span class="text">{it.name}</span>}{" "}
              {wide > 110 && <span class="part">{share}</span>}
            </button>
          );
        })}
      </div>
    </section>
  );
}
