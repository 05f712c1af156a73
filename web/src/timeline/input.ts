// Pointer, wheel, touch and keys on the stage.

import type { Model } from "./model";
import { RULER, STEPS, STRIP } from "./ruler";
import type { Stage } from "./stage";

const CLICK_PX = 4;

type Drag =
  | { what: "pan"; moved: boolean }
  | { what: "range"; anchor: number; moved: boolean }
  | { what: "strip"; moved: boolean };

/** Listens until the answer is called. `area` is the canvas' place on the screen. */
export function listen(element: HTMLElement, stage: Stage, model: Model): () => void {
  const pointers = new Map<number, { x: number; y: number }>();
  let drag: Drag | null = null;
  let pinch = 0;
  const off = new AbortController();
  const { signal } = off;

  const place = (it: MouseEvent) => {
    const box = stage.canvas.getBoundingClientRect();
    return { x: it.clientX - box.left, y: it.clientY - box.top };
  };
  const onCanvas = (it: MouseEvent) => {
    const { x } = place(it);
    const aside = (it.target as Element).closest("button, input, a, .tl-head, .tl-notes, .tl-edge");
    return !aside && x >= 0 && x <= stage.view.width;
  };

  element.addEventListener(
    "pointerdown",
    (it) => {
      if (!onCanvas(it) || (it.button !== 0 && it.button !== 1)) return;
      const at = place(it);
      pointers.set(it.pointerId, at);
      element.setPointerCapture(it.pointerId);
      if (pointers.size === 2) {
        pinch = distance(pointers);
        drag = null;
        return;
      }
      const inTicks = at.y >= STRIP + STEPS && at.y < RULER;
      if (at.y < STRIP) {
        drag = { what: "strip", moved: true };
        toStrip(at.x);
      } else if (it.shiftKey || inTicks || (model.selecting.value && at.y >= RULER)) {
        drag = { what: "range", anchor: stage.view.time(at.x), moved: false };
      } else {
        drag = { what: "pan", moved: false };
      }
    },
    { signal },
  );

  const toStrip = (x: number): void => {
    const { from, to } = stage.ruler.whole;
    const middle = from + (x / stage.view.width) * (to - from);
    const half = stage.view.span / 2;
    stage.jump(middle - half, middle + half);
  };

  element.addEventListener(
    "pointermove",
    (it) => {
      const at = place(it);
      const before = pointers.get(it.pointerId);
      if (!before) {
        if (onCanvas(it)) stage.point(at.x, at.y);
        else if (stage.pointed.peek()) stage.point(null, 0);
        return;
      }
      const start = { ...before };
      if (pointers.size === 2) {
        pointers.set(it.pointerId, at);
        const now = distance(pointers);
        const [a, b] = [...pointers.values()];
        const middle = (a!.x + b!.x) / 2;
        stage.pan(-(at.x - start.x) / 2);
        if (pinch > 0) stage.zoom(now / pinch, middle);
        pinch = now;
        return;
      }
      if (!drag) return;
      if (!drag.moved) {
        if (Math.hypot(at.x - start.x, at.y - start.y) < CLICK_PX) return;
        drag.moved = true;
        stage.point(null, 0);
      }
      pointers.set(it.pointerId, at);
      if (drag.what === "pan") {
        stage.pan(start.x - at.x);
        if (start.y !== at.y) model.scrollTo(stage.scrollTop + start.y - at.y);
      } else if (drag.what === "strip") {
        toStrip(at.x);
      } else {
        const [from, to] = sorted(drag.anchor, stage.view.time(at.x));
        stage.range = { from, to };
        stage.draw();
      }
    },
    { signal },
  );

  const up = (it: PointerEvent): void => {
    const at = place(it);
    if (!pointers.delete(it.pointerId) || !drag) return;
    const done = drag;
    drag = null;
    if (done.moved) {
      if (done.what === "range" && stage.range) model.chooseRange(stage.range);
      return;
    }
    if (at.y >= STRIP && at.y < RULER) {
      const step = stage.ruler.at(stage.view.time(at.x));
      if (step >= 0) model.showStep(step);
      return;
    }
    const found = stage.pointAt(at.x, at.y);
    model.choose(found?.span?.event ?? null);
  };
  element.addEventListener("pointerup", up, { signal });
  element.addEventListener(
    "pointercancel",
    (it) => {
      pointers.delete(it.pointerId);
      drag = null;
    },
    { signal },
  );
  element.addEventListener("pointerleave", () => stage.point(null, 0), { signal });

  element.addEventListener(
    "dblclick",
    (it) => {
      if (!onCanvas(it)) return;
      const at = place(it);
      const event = stage.pointAt(at.x, at.y)?.span?.event;
      if (event !== undefined) void model.focusOn(event);
    },
    { signal },
  );

  element.addEventListener(
    "wheel",
    (it) => {
      const scale = it.deltaMode === WheelEvent.DOM_DELTA_LINE ? 18 : 1;
      const { x } = place(it);
      if (it.ctrlKey || it.metaKey || it.altKey) {
        it.preventDefault();
        // A pinch on a touchpad comes as small steps of the wheel with ctrl.
        const size = Math.min(Math.abs(it.deltaY * scale), 120);
        const by = Math.exp((size / 120) * 0.35 * (it.ctrlKey && size < 40 ? 3 : 1));
        stage.zoom(it.deltaY < 0 ? by : 1 / by, Math.max(x, 0));
        return;
      }
      it.preventDefault();
      const sideways = it.shiftKey && it.deltaX === 0 ? it.deltaY : it.deltaX;
      if (sideways !== 0) stage.pan(sideways * scale);
      if (!it.shiftKey && it.deltaY !== 0) {
        model.scrollTo(stage.scrollTop + it.deltaY * scale);
        const { x: over, y } = place(it);
        stage.point(over, y);
      }
    },
    { signal, passive: false },
  );

  addEventListener("keydown", (it) => onKey(it, stage, model), { signal });
  return () => off.abort();
}

const sorted = (a: number, b: number): [number, number] => (a < b ? [a, b] : [b, a]);

function distance(pointers: Map<number, { x: number; y: number }>): number {
  const [a, b] = [...pointers.values()];
  return Math.hypot(a!.x - b!.x, a!.y - b!.y);
}

/** Every key, as the help lists them. */
export const KEYS: [string, string][] = [
  ["w s or + −", "zoom in, out"],
  ["a d or ← →", "move left, right"],
  ["↑ ↓", "scroll the tracks"],
  ["[ ]", "step before, next step"],
  ["f", "zoom to the selection, or to the range"],
  ["h", "back to the typical step"],
  ["0", "the whole trace"],
  ["/", "search by name"],
  ["n N", "next hit, hit before"],
  [", .", "span before, next span on its lane"],
  ["p", "the event around the selected one"],
  ["Enter", "select what lies in the middle"],
  ["m", "drag selects a range, or moves the view"],
  ["k", "a mark with a note at the pointer, kept in the address"],
  ["Esc", "closes what was opened last"],
  ["?", "this list"],
];

export const GESTURES: [string, string][] = [
  ["drag", "moves the view"],
  ["shift + drag, or drag on the times", "selects a range"],
  ["wheel", "scrolls the tracks"],
  ["ctrl, ⌘ or alt + wheel, pinch", "zooms to the pointer"],
  ["shift + wheel", "moves the view"],
  ["click", "selects; on a step zooms to it"],
  ["double click", "zooms to the event"],
];

function onKey(it: KeyboardEvent, stage: Stage, model: Model): void {
  const target = it.target as Element;
  const typing = target.closest("input, select, textarea, [contenteditable]");
  if (it.key === "Escape") {
    if (model.escape()) it.preventDefault();
    if (typing instanceof HTMLElement) typing.blur();
    return;
  }
  if (typing || it.ctrlKey || it.metaKey || it.altKey) return;
  if (it.key === "Enter" && target.closest("button, a")) return;
  const { view } = stage;
  const at = stage.pointed.peek()?.x ?? view.width / 2;
  const wide = view.width / 5;
  const actions: Record<string, () => void> = {
    w: () => stage.glideZoom(1.4, at),
    s: () => stage.glideZoom(1 / 1.4, at),
    "+": () => stage.glideZoom(1.4, view.width / 2),
    "=": () => stage.glideZoom(1.4, view.width / 2),
    "-": () => stage.glideZoom(1 / 1.4, view.width / 2),
    a: () => stage.glidePan(-wide),
    d: () => stage.glidePan(wide),
    ArrowLeft: () => stage.glidePan(-wide),
    ArrowRight: () => stage.glidePan(wide),
    ArrowUp: () => model.scrollTo(stage.scrollTop - 60),
    ArrowDown: () => model.scrollTo(stage.scrollTop + 60),
    "[": () => model.goToStep(-1),
    "]": () => model.goToStep(1),
    f: () => focus(stage, model),
    h: () => stage.glide(model.home().from, model.home().to),
    "0": () => stage.glide(model.whole().from, model.whole().to),
    "/": () => document.getElementById("tl-search")?.focus(),
    n: () => model.walk(1),
    N: () => model.walk(-1),
    ",": () => beside(stage, model, false),
    ".": () => beside(stage, model, true),
    p: () => {
      const parent = model.details.value.value?.parent;
      if (parent !== null && parent !== undefined) model.choose(parent);
    },
    Enter: () => {
      const found = middle(stage);
      if (model.selected.value !== null) focus(stage, model);
      else if (found) model.choose(found);
    },
    k: () => model.addNote(view.time(at)),
    m: () => (model.selecting.value = !model.selecting.value),
    "?": () => (model.helping.value = !model.helping.value),
  };
  const action = actions[it.key.length === 1 && it.key !== "N" ? it.key.toLowerCase() : it.key];
  if (!action) return;
  it.preventDefault();
  action();
}

function focus(stage: Stage, model: Model): void {
  const { selected, range } = model;
  if (selected.value !== null) void model.focusOn(selected.value);
  else if (range.value) stage.glide(range.value.from, range.value.to);
}

function beside(stage: Stage, model: Model, forward: boolean): void {
  if (!stage.selected) return;
  const found = stage.neighbour(stage.selected, forward)?.span;
  if (found) model.choose(found.event);
}

/** The first span under the middle of the view, from the top. */
function middle(stage: Stage): number | null {
  for (let y = RULER; y < stage.height; y += 4) {
    const found = stage.pointAt(stage.view.width / 2, y)?.span;
    if (found) return found.event;
  }
  return null;
}
