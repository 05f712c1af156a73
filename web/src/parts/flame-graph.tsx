// A flame graph from the top down: a click zooms in, arrow keys move, a box at the pointer tells.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { bars, depth, type Bar, type FlameNode } from "./flame";
import { useWidth } from "./width";
import "./flame.css";

const LINE = 20;

export interface FlameGraphProps<T> {
  label: string;
  root: FlameNode<T>;
  zoom: FlameNode<T>;
  onZoom: (to: FlameNode<T>) => void;
  /** The category whose colour it has. */
  colour: (of: FlameNode<T>) => string;
  /** `null`: nothing is looked for. */
  matches: ((of: FlameNode<T>) => boolean) | null;
  /** What the box at the pointer says. */
  tell: (of: FlameNode<T>) => ComponentChildren;
  /** The same for those who do not see it, in one line. */
  say: (of: FlameNode<T>) => string;
}

export function FlameGraph<T>(props: FlameGraphProps<T>) {
  const { root, zoom, onZoom } = props;
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const drawn = useMemo(() => bars(zoom, width), [zoom, width]);
  const levels = useMemo(() => depth(root), [root]);
  const [focused, setFocused] = useState<FlameNode<T> | null>(null);
  const [told, setTold] = useState<{ bar: Bar<T>; x: number; y: number } | null>(null);
  const single = drawn.filter((it) => it.many === 1);
  const reachable =
    single.find((it) => it.node === focused) ?? single.find((it) => it.node === zoom);

  const onKeyDown = (event: KeyboardEvent) => {
    if (!reachable) return;
    const same = single.filter((it) => it.level === reachable.level);
    const at = same.indexOf(reachable);
    const next: Bar<T> | undefined = {
      ArrowLeft: same[at - 1],
      ArrowRight: same[at + 1],
      ArrowUp: single.find((it) => it.node === reachable.node.parent),
      ArrowDown: single.find((it) => it.node.parent === reachable.node),
    }[event.key];
    if (next) {
      setFocused(next.node);
      frame.current?.querySelector<HTMLElement>(`[data-at="${drawn.indexOf(next)}"]`)?.focus();
    } else if (event.key === "Backspace" && zoom.parent) {
      onZoom(zoom.parent);
    } else if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
  };

  return (
    <div
      ref={frame}
      class="flame"
      role="group"
      aria-label={`${props.label}: arrow keys move, Enter zooms in, Backspace out`}
      style={{ height: `${levels * LINE}px` }}
      onKeyDown={onKeyDown}
      onMouseLeave={() => setTold(null)}
    >
      {drawn.map((bar, at) => {
        const { node } = bar;
        const place = {
          left: `${bar.left}px`,
          width: `${Math.max(bar.width - 1, 1)}px`,
          top: `${bar.level * LINE}px`,
        };
        const tell = (event: MouseEvent) => setTold({ bar, x: event.clientX, y: event.clientY });
        if (bar.many > 1 || bar.width < 3) {
          return <div key={`${node.id}+`} class="many" style={place} onMouseMove={tell} />;
        }
        const matched = props.matches?.(node);
        const kind = [
          bar.width < 16 && "narrow",
          matched === true && "matched",
          matched === false && "unmatched",
          bar.level < levelOf(zoom) && "around",
        ];
        return (
          <button
            key={node.id}
            data-at={at}
            tabIndex={bar === reachable ? 0 : -1}
            class={kind.filter(Boolean).join(" ")}
            aria-label={props.say(node)}
            aria-current={node === zoom ? "true" : undefined}
            style={{ ...place, "--colour": `var(--${props.colour(node)})` }}
            onFocus={(event) => {
              setFocused(node);
              if (!event.currentTarget.matches(":focus-visible")) return;
              const box = event.currentTarget.getBoundingClientRect();
              setTold({ bar, x: box.left, y: box.bottom });
            }}
            onBlur={() => setTold(null)}
            onMouseMove={tell}
            onClick={() => onZoom(node)}
          >
            {bar.width > 28 && node.name}
          </button>
        );
      })}
      {told && (
        <Told x={told.x} y={told.y}>
          {told.bar.many > 1 ? (
            <b>{told.bar.many} neighbours, each too narrow to draw</b>
          ) : (
            props.tell(told.bar.node)
          )}
        </Told>
      )}
    </div>
  );
}

function levelOf<T>(of: FlameNode<T>): number {
  let level = 0;
  for (let at = of.parent; at !== null; at = at.parent) level += 1;
  return level;
}

/** Beside the pointer, wherever in the window there is room for it. */
function Told({ x, y, children }: { x: number; y: number; children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const it = box.current;
    if (!it) return;
    const { offsetWidth: width, offsetHeight: height } = it;
    const left = x + 12 + width > innerWidth ? x - 12 - width : x + 12;
    const top = y + 16 + height > innerHeight ? y - 8 - height : y + 16;
    it.style.left = `${Math.max(4, Math.min(left, innerWidth - width - 4))}px`;
    it.style.top = `${Math.max(4, top)}px`;
  });
  return (
    <div ref={box} class="flame-told" aria-hidden="true">
      {children}
    </div>
  );
}
