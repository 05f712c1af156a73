// The timeline itself, without what is around it: what is seen, what is pointed at, each frame.

import { signal } from "@preact/signals";
import type { EventDetails, EventLink, Timeline, Track } from "../data/types";
import type { Lights } from "./block";
import { CanvasPainter } from "./canvas-painter";
import { GlPainter } from "./gl-painter";
import { palette, withAlpha, type Painter, type Palette } from "./painter";
import { Ruler, RULER } from "./ruler";
import { Scene } from "./scene";
import { TileCache, type Need } from "./tile-cache";
import { NO_NAME, type TileSource, type Window } from "./tiles";
import { firstRowAt, LANE, type Row, type Rows } from "./tracks";
import { Viewport } from "./viewport";

/** A span that is pointed at, or a value. */
export interface Pointed {
  track: Track;
  time: number;
  /** In the stage, in CSS pixels. */
  x: number;
  y: number;
  span: {
    event: number;
    lane: number;
    start: number;
    end: number;
    /** Its length where that is known: one that began before its tile does not say. */
    dur: number | null;
    count: number;
    total: number;
    kind: number;
    name: string | null;
  } | null;
  value: number | null;
}

/** An event's place, for outlines. */
export interface Placed {
  event: number;
  track: number;
  lane: number;
  start_ps: number;
  dur_ps: number;
}

/** Requests follow a movement no more often than this. */
const ASK_MS = 60;
const GLIDE_MS = 45;
const MOST_RATIO = 2;
const DIMMED = 0.78;
/** A panel opens within this time after a choice. */
const HOLD_MS = 400;
/** So much of a selected event is to be seen beside its panel, and no panel covers more. */
const SIGHT_PX = 24;
const COVERED_PX = 900;
const NO_LIGHTS: Lights = { lit: new Set(), starts: new Map(), marks: 0 };
const NO_ROWS: Rows = { pinned: [], pinnedHeight: 0, rows: [], height: 0, found: 0 };

export class Stage {
  readonly view = new Viewport();
  /** Where a glide ends. */
  private readonly goal = new Viewport();
  readonly pointed = signal<Pointed | null>(null);
  readonly origin = signal("");
  readonly error = signal<Error | null>(null);
  /** What the last frame showed, for what lies over it. */
  readonly seen = signal<Window>({ from: 0, to: 1 });
  /** Times with a note. */
  notes: readonly number[] = [];
  /** Until when a change of width is a panel that opens or shuts. */
  private heldUntil = -Infinity;
  /** The rows that may be seen; their headers are drawn as elements. */
  readonly shown = signal<Row[]>([]);
  ruler: Ruler;
  readonly painter: Painter;
  rows: Rows = NO_ROWS;
  height = 1;
  scrollTop = 0;
  /** What is drawn on top. */
  selected: Placed | null = null;
  /** Of what is pointed at, once it is known: a tile has only a part of what is longer. */
  whole: Placed | null = null;
  links: { causes: EventLink[]; effects: EventLink[] } | null = null;
  range: Window | null = null;
  marks: readonly number[] = [];
  mark: number | null = null;
  /** All that is seen was drawn at its level at least once. */
  ready = false;
  onMove: () => void = () => {};
  private lights = NO_LIGHTS;
  /** Times that are lit, all else lying under a veil; in order. */
  private litSpans: readonly Window[] = [];
  private palette: Palette;
  private readonly cache: TileCache;
  private readonly scene: Scene;
  private frame = 0;
  private gliding = false;
  private lastFrame = 0;
  private lastAsk = -Infinity;
  private askTimer = 0;
  private readonly still = matchMedia("(prefers-reduced-motion: reduce)");
  private readonly tracks: Map<number, Track>;
  private readonly rowOfTrack = new Map<number, Row>();
  private hoverLine: number | null = null;

  constructor(
    readonly canvas: HTMLCanvasElement,
    source: TileSource,
    readonly timeline: Timeline,
    painter: string | undefined,
  ) {
    const bounds = {
      from: timeline.start_ps,
      to: Math.max(timeline.end_ps, timeline.start_ps + 1),
    };
    this.view.within(bounds);
    this.goal.within(bounds);
    const gl = painter === "canvas" ? null : GlPainter.on(canvas, painter === "webgl");
    this.painter = gl ?? new CanvasPainter(canvas);
    this.palette = palette(timeline.kinds);
    this.painter.use(this.palette);
    this.cache = new TileCache(
      source,
      bounds,
      () => this.draw(),
      (block) => this.painter.forget(block),
      (error) => (this.error.value = error),
    );
    this.scene = new Scene(this.painter, this.view, this.cache);
    this.ruler = this.rulerOf(null);
    this.tracks = new Map(timeline.tracks.map((it) => [it.id, it]));
  }

  /** Nothing is asked for and nothing moves. */
  get idle(): boolean {
    return this.cache.idle && !this.frame && !this.askTimer && this.ready;
  }

  get heldBytes(): number {
    return this.cache.heldBytes;
  }

  track(id: number): Track | undefined {
    return this.tracks.get(id);
  }

  /** A panel is about to open or shut: then nothing moves, there is only less or more to see. */
  hold(): void {
    this.heldUntil = performance.now() + HOLD_MS;
  }

  resize(width: number, height: number): void {
    const ratio = Math.min(devicePixelRatio || 1, MOST_RATIO);
    if (performance.now() < this.heldUntil && width !== this.view.width) {
      const span = (this.goal.span * width) / this.view.width;
      const from = this.gliding ? this.goal.from : this.view.from;
      this.view.width = this.goal.width = Math.max(width, 1);
      this.view.set(from, from + span);
      this.goal.set(from, from + span);
      this.gliding = false;
      this.onMove();
    }
    this.view.width = Math.max(width, 1);
    this.goal.width = this.view.width;
    this.height = height;
    this.painter.resize(this.view.width, height, ratio);
    this.drawNow();
  }

  /** Without a host that of the typical step. */
  private rulerOf(host: number | null): Ruler {
    const { steps, typical_step } = this.timeline;
    const typical = steps[typical_step ?? -1];
    return new Ruler(this.timeline, host ?? typical?.host ?? steps[0]?.host ?? null);
  }

  /** The steps of this host are the ruler. */
  ruleBy(host: number | null): void {
    this.ruler = this.rulerOf(host);
    this.draw();
  }

  retheme(): void {
    this.palette = palette(this.timeline.kinds);
    this.painter.use(this.palette);
    this.draw();
  }

  arrange(rows: Rows): void {
    this.rows = rows;
    this.rowOfTrack.clear();
    for (const row of [...rows.rows, ...rows.pinned]) {
      if (row.track) this.rowOfTrack.set(row.track.id, row);
    }
    this.showRows();
    this.draw();
  }

  light(lights: Lights, spans: readonly Window[]): void {
    this.lights = lights;
    this.litSpans = spans;
    this.painter.dim(lights.lit.size > 0 ? DIMMED : 0);
    this.draw();
  }

  scrolledTo(top: number): void {
    if (top === this.scrollTop) return;
    this.scrollTop = top;
    this.showRows();
    this.draw();
  }

  /** Height that is left for rows that scroll. */
  get bodyHeight(): number {
    return this.height - RULER - this.rows.pinnedHeight;
  }

  private showRows(): void {
    const first = firstRowAt(this.rows.rows, this.scrollTop);
    const last = firstRowAt(this.rows.rows, this.scrollTop + this.bodyHeight);
    this.shown.value = this.rows.rows.slice(first, last + 1);
  }

  /** At once, as with a drag. */
  jump(from: number, to: number): void {
    this.view.set(from, to);
    this.goal.set(from, to);
    this.gliding = false;
    this.moved();
  }

  pan(pixels: number): void {
    this.view.pan(pixels);
    this.settle();
  }

  zoom(factor: number, x: number): void {
    this.view.zoom(factor, x);
    this.settle();
  }

  private settle(): void {
    this.goal.set(this.view.from, this.view.to);
    this.gliding = false;
    this.moved();
  }

  /** Softly, unless the user wants no motion. */
  glide(from: number, to: number): void {
    this.goal.set(from, to);
    this.startGliding();
  }

  glidePan(pixels: number): void {
    this.goal.pan(pixels);
    this.startGliding();
  }

  glideZoom(factor: number, x: number): void {
    this.goal.zoom(factor, x);
    this.startGliding();
  }

  private startGliding(): void {
    if (this.still.matches) {
      this.jump(this.goal.from, this.goal.to);
      return;
    }
    if (!this.gliding) this.lastFrame = performance.now();
    this.gliding = true;
    this.moved();
  }

  /** Where the view is, or will be once it rests. */
  get window(): Window {
    return { from: this.goal.from, to: this.goal.to };
  }

  private moved(): void {
    this.draw();
    this.onMove();
  }

  draw(): void {
    if (!this.frame) this.frame = requestAnimationFrame((now) => this.onFrame(now));
  }

  private drawNow(): void {
    if (this.frame) cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.paint();
  }

  private onFrame(now: number): void {
    this.frame = 0;
    if (this.gliding) this.glideOn(now);
    this.paint();
    if (this.gliding) this.draw();
  }

  private glideOn(now: number): void {
    const share = 1 - Math.exp(-Math.max(now - this.lastFrame, 4) / GLIDE_MS);
    this.lastFrame = now;
    const { view, goal } = this;
    const near =
      Math.abs(goal.from - view.from) + Math.abs(goal.to - view.to) < goal.span / goal.width;
    const mixed = (a: number, b: number) => (near ? b : a + (b - a) * share);
    view.set(mixed(view.from, goal.from), mixed(view.to, goal.to));
    if (near) {
      view.from = goal.from;
      view.to = goal.to;
      this.gliding = false;
    }
  }

  private ask(): void {
    const now = performance.now();
    const wait = this.lastAsk + ASK_MS - now;
    if (wait > 0) {
      if (!this.askTimer) {
        this.askTimer = window.setTimeout(() => {
          this.askTimer = 0;
          this.ask();
        }, wait);
      }
      return;
    }
    this.lastAsk = now;
    const tracks: Track[] = [];
    for (const row of this.rows.pinned) tracks.push(row.track!);
    for (const row of this.shown.peek()) if (row.track) tracks.push(row.track);
    const need: Need = { level: this.goal.level, from: this.goal.from, to: this.goal.to, tracks };
    this.cache.update(need);
    // What was waited for may have been there all along.
    if (!this.ready && this.cache.idle) this.draw();
  }

  private paint(): void {
    const { painter, view, palette, rows, ruler } = this;
    this.cache.tick();
    const origin = ruler.origin(view);
    this.origin.value = origin.text;
    if (this.notes.length > 0) this.seen.value = { from: view.from, to: view.to };
    const top = RULER + rows.pinnedHeight;
    const shown = this.shown.peek();
    painter.begin();
    painter.clip(RULER, this.height);
    ruler.behind(painter, view, palette, RULER, this.height);
    painter.clip(top, this.height);
    let sharp = this.paintRows(shown, top - this.scrollTop);
    if (rows.pinned.length > 0) {
      painter.clip(RULER, top);
      painter.rect(0, RULER, view.width, rows.pinnedHeight, palette.ground);
      ruler.behind(painter, view, palette, RULER, top);
      sharp = this.paintRows(rows.pinned, RULER) && sharp;
      painter.rect(0, top - 1, view.width, 1, palette.strongLine);
    }
    painter.over();
    painter.clip(top, this.height);
    this.paintLabels(shown, top - this.scrollTop);
    if (rows.pinned.length > 0) {
      painter.clip(RULER, top);
      this.paintLabels(rows.pinned, RULER);
    }
    painter.clip(RULER, this.height);
    this.paintOnTop();
    painter.clip(0, RULER);
    ruler.draw(painter, view, palette, origin, this.marks, this.mark);
    painter.end();
    if (sharp && rows.rows.length > 0) this.ready = true;
    this.ask();
  }

  /** Whether all spans that were drawn were of the right level. */
  private paintRows(shown: readonly Row[], offset: number): boolean {
    const { painter, view, palette, scene, lights } = this;
    for (const row of shown) {
      const y = row.top + offset;
      if (row.group) painter.rect(0, y, view.width, row.height, palette.raised);
      painter.rect(0, y + row.height - 1, view.width, 1, palette.line);
    }
    let sharp = true;
    for (const row of shown) {
      if (!row.track) continue;
      const y = row.top + offset;
      if (row.pitch > 0) sharp = scene.spans(row, y + 3, lights, palette) && sharp;
      else if (row.track.counter) scene.counter(row, y, palette);
    }
    return sharp;
  }

  private paintLabels(shown: readonly Row[], offset: number): void {
    for (const row of shown) {
      if (row.track && row.pitch > 0) {
        this.scene.labels(row, row.top + offset + 3, this.lights, this.palette);
      }
    }
  }

  /** Where a row is drawn; null where it is folded away. */
  private yOf(track: number): { row: Row; y: number } | null {
    const row = this.rowOfTrack.get(track);
    if (!row) return null;
    const pinned = row.key.startsWith("pinned");
    const offset = pinned ? RULER : RULER + this.rows.pinnedHeight - this.scrollTop;
    return { row, y: row.top + offset + 3 };
  }

  /** Dims all but the times that are lit, which have a line on top. */
  private paintVeil(): void {
    const { painter, view, palette, litSpans } = this;
    if (litSpans.length === 0) return;
    const veil = withAlpha(palette.ground, DIMMED);
    const height = this.height - RULER;
    let x = 0;
    for (const it of litSpans) {
      if (it.to < view.from) continue;
      if (it.from > view.to) break;
      const left = Math.max(view.x(it.from), 0);
      const right = Math.max(Math.min(view.x(it.to), view.width), left + 1);
      // A gap that is narrower than a pixel would darken its neighbours.
      if (left - x >= 1) painter.rect(x, RULER, left - x, height, veil);
      painter.rect(left, RULER, right - left, 3, palette.accent);
      x = Math.max(x, right);
    }
    if (view.width - x >= 1) painter.rect(x, RULER, view.width - x, height, veil);
  }

  private paintOnTop(): void {
    const { painter, view, palette, selected, range } = this;
    this.paintVeil();
    if (range) {
      const left = Math.max(view.x(range.from), 0);
      const right = Math.min(view.x(range.to), view.width);
      if (right > left) {
        const fill = withAlpha(palette.accent, 0.14);
        painter.rect(left, RULER, right - left, this.height - RULER, fill);
        painter.rect(left, RULER, 1, this.height - RULER, palette.accent);
        painter.rect(right - 1, RULER, 1, this.height - RULER, palette.accent);
      }
    }
    for (const it of this.notes) {
      const x = view.x(it);
      if (x >= 0 && x <= view.width) {
        painter.rect(x, RULER, 1, this.height - RULER, palette.accent);
      }
    }
    if (this.hoverLine !== null) {
      const line = withAlpha(palette.faint, 0.5);
      painter.rect(this.hoverLine, RULER, 1, this.height - RULER, line);
    }
    const over = this.pointed.peek()?.span;
    if (over) {
      const { track } = this.pointed.peek()!;
      const whole = over.count < 2 && this.whole?.event === over.event ? this.whole : null;
      const start = whole ? whole.start_ps : over.start;
      const end = whole ? whole.start_ps + whole.dur_ps : over.end;
      this.outline(track.id, over.lane, start, end, palette.text, 1);
    }
    if (!selected) return;
    const { track, lane, start_ps, dur_ps } = selected;
    this.outline(track, lane, start_ps, start_ps + dur_ps, palette.text, 2);
    for (const it of this.links?.causes ?? []) this.edge(it, selected);
    for (const it of this.links?.effects ?? []) this.edge(selected, it);
  }

  private outline(
    track: number,
    lane: number,
    start: number,
    end: number,
    tint: number,
    thick: number,
  ): void {
    const at = this.yOf(track);
    if (!at || at.row.pitch === 0) return;
    const { view, painter } = this;
    const y = at.y + lane * at.row.pitch;
    const left = Math.max(view.x(start), -4) - thick;
    const right = Math.min(Math.max(view.x(end), view.x(start) + 1), view.width + 4) + thick;
    if (right < 0 || left > view.width) return;
    const height = at.row.bar + 2 * thick;
    const top = y - thick;
    painter.rect(left, top, right - left, thick, tint);
    painter.rect(left, top + height - thick, right - left, thick, tint);
    painter.rect(left, top, thick, height, tint);
    painter.rect(right - thick, top, thick, height, tint);
  }

  /** From the call to what it caused, as a curve with an arrow's head. */
  private edge(from: Placed, to: Placed): void {
    const [a, b] = [this.yOf(from.track), this.yOf(to.track)];
    if (!a || !b) return;
    const { view, painter, palette } = this;
    const x0 = view.x(from.start_ps + from.dur_ps / 2);
    const y0 = a.y + from.lane * a.row.pitch + a.row.bar;
    const x1 = view.x(to.start_ps);
    const y1 = b.y + to.lane * b.row.pitch + b.row.bar / 2;
    const most = view.width * 4;
    if (Math.max(x0, x1) < -most || Math.min(x0, x1) > most + view.width) return;
    const bend = Math.min(Math.max(Math.abs(x1 - x0) / 2, 24), 160);
    let [lastX, lastY] = [x0, y0];
    const pieces = 24;
    for (let at = 1; at <= pieces; at += 1) {
      const t = at / pieces;
      const u = 1 - t;
      const x = u * u * u * x0 + 3 * u * u * t * x0 + 3 * u * t * t * (x1 - bend) + t * t * t * x1;
      const y = u * u * u * y0 + 3 * u * u * t * (y0 + 24) + 3 * u * t * t * y1 + t * t * t * y1;
      painter.line(lastX, lastY, x, y, palette.text);
      [lastX, lastY] = [x, y];
    }
    painter.line(x1 - 6, y1 - 4, x1, y1, palette.text);
    painter.line(x1 - 6, y1 + 4, x1, y1, palette.text);
  }

  rowAt(y: number): { row: Row; y: number } | null {
    const { rows } = this;
    const inPinned = y - RULER;
    if (inPinned < 0) return null;
    if (inPinned < rows.pinnedHeight) {
      const row = rows.pinned[firstRowAt(rows.pinned, inPinned)];
      return row ? { row, y: inPinned - row.top } : null;
    }
    const inRows = inPinned - rows.pinnedHeight + this.scrollTop;
    const row = rows.rows[firstRowAt(rows.rows, inRows)];
    return row ? { row, y: inRows - row.top } : null;
  }

  /** What lies under the pointer. */
  pointAt(x: number, y: number): Pointed | null {
    const at = this.rowAt(y);
    const track = at?.row.track;
    if (!at || !track) return null;
    const time = this.view.time(x);
    const place = { track, time, x, y };
    if (at.row.pitch === 0) {
      const value = this.scene.valueBefore(track, time);
      return { ...place, span: null, value };
    }
    const lane = Math.floor((at.y - 3) / at.row.pitch);
    const found = this.scene.find(at.row, time, lane, 3 / this.view.pixelsPerPs);
    if (!found) return { ...place, span: null, value: null };
    const { block, at: span } = found;
    const { spans } = block;
    const count = spans.count[span]!;
    const whole = count === 1;
    const total = spans.total[span]!;
    const start = block.start(span);
    const name = spans.name[span]!;
    return {
      ...place,
      value: null,
      span: {
        event: spans.event[span]!,
        lane,
        start,
        end: whole ? start + total : block.end(span),
        dur: whole ? total : null,
        count,
        total,
        kind: spans.kind[span]!,
        name: name === NO_NAME ? null : (spans.names[name] ?? null),
      },
    };
  }

  point(x: number | null, y: number): void {
    const next = x === null ? null : this.pointAt(x, y);
    const before = this.pointed.peek();
    this.hoverLine = x;
    if (next?.span || next?.value !== null || before?.span) this.pointed.value = next;
    else if (before) this.pointed.value = null;
    this.draw();
  }

  /** The span that begins next, or before, on the same lane. */
  neighbour(of: Placed, forward: boolean): Pointed | null {
    const at = this.yOf(of.track);
    if (!at || at.row.pitch === 0) return null;
    const end = of.start_ps + of.dur_ps;
    const pixel = 1 / this.view.pixelsPerPs;
    const y = at.y + of.lane * at.row.pitch + at.row.pitch / 2;
    let time = forward ? end + pixel : of.start_ps - pixel;
    for (let tries = 0; tries < 4000; tries += 1, time += forward ? 2 * pixel : -2 * pixel) {
      const found = this.pointAt(this.view.x(time), y);
      if (found?.span && found.span.event !== of.event) return found;
      if (time > this.view.to + this.view.span || time < this.view.from - this.view.span) break;
    }
    return null;
  }

  select(details: EventDetails | null): void {
    this.selected = details;
    this.links = details;
    this.draw();
  }

  /** Moves the view as little as is needed where a panel covers what was selected. */
  keepInSight(from: number, to: number): void {
    const { view } = this;
    if (performance.now() > this.heldUntil || to < view.from) return;
    const beyond = view.x(from) - (view.width - SIGHT_PX);
    if (beyond > 0 && beyond < COVERED_PX) this.pan(beyond);
  }

  /** How far to scroll for a track to be seen; null where it is. */
  scrollFor(track: number, lane: number): number | null {
    const row = this.rowOfTrack.get(track);
    if (!row || row.key.startsWith("pinned")) return null;
    const top = row.top + lane * Math.max(row.pitch, 0);
    const bottom = top + LANE + 8;
    if (top < this.scrollTop) return Math.max(top - 40, 0);
    if (bottom > this.scrollTop + this.bodyHeight) return bottom - this.bodyHeight + 40;
    return null;
  }

  close(): void {
    if (this.frame) cancelAnimationFrame(this.frame);
    clearTimeout(this.askTimer);
    this.frame = -1;
    this.cache.close();
    this.painter.close();
  }
}
