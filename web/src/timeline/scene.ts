// Draws the rows of one frame: spans from the best blocks that are there, names, values.

import type { Track } from "../data/types";
import type { Block, Lights } from "./block";
import type { Painter, Palette } from "./painter";
import { mix, withAlpha } from "./painter";
import type { TileCache } from "./tile-cache";
import { tileLength } from "./tiles";
import type { Row } from "./tracks";
import type { Viewport } from "./viewport";

/** So many levels coarser a block may be drawn by the GPU: beyond, its numbers are too coarse. */
const GPU_LEVELS = 8;
/** Finer blocks in place of one that is not there: each level doubles their number. */
const FINER_LEVELS = 3;
const LEAST_LABEL = 22;
const LABEL_PAD = 4;
const LEAST_TEXT_PITCH = 12;

/** A block and the part of the screen that it stands for. */
export interface Piece {
  block: Block;
  left: number;
  right: number;
}

export class Scene {
  /** The pieces of the row at hand: made once, used again. */
  private readonly pieces: Piece[] = [];
  private nPieces = 0;
  private readonly place = {
    x: 0,
    width: 0,
    clipLeft: 0,
    clipRight: 0,
    top: 0,
    pitch: 0,
    bar: 0,
  };
  /** Names of spans that go on in the next piece, by lane. */
  private readonly openLeft = new Float64Array(256);
  private readonly openRight = new Float64Array(256);
  private readonly openAt = new Int32Array(256);
  private readonly openBlock: (Block | null)[] = new Array<null>(256).fill(null);

  constructor(
    private readonly painter: Painter,
    private readonly view: Viewport,
    private readonly cache: TileCache,
  ) {}

  /** Whether all that was drawn was of the right level. */
  spans(row: Row, top: number, lights: Lights, palette: Palette): boolean {
    const track = row.track!;
    const sharp = this.collect(track);
    const { place, view, painter } = this;
    place.top = top;
    place.pitch = row.pitch;
    place.bar = row.bar;
    for (let at = 0; at < this.nPieces; at += 1) {
      const { block, left, right } = this.pieces[at]!;
      if (block.level - view.level > GPU_LEVELS) {
        this.byHand(block, left, right, row, top, palette);
        continue;
      }
      place.x = view.x(block.begin);
      place.width = block.length * view.pixelsPerPs;
      place.clipLeft = left;
      place.clipRight = right;
      painter.spans(block, lights, place);
    }
    return sharp;
  }

  /** The blocks that stand for the window, left to right. */
  private collect(track: Track): boolean {
    this.nPieces = 0;
    const { view } = this;
    const level = view.level;
    const length = tileLength(level);
    const from = Math.max(view.from, track.first_ps ?? Infinity);
    const to = Math.min(view.to, track.last_ps ?? -Infinity);
    if (from > to) return true;
    let sharp = true;
    const last = Math.floor(to / length);
    for (let tile = Math.floor(from / length); tile <= last; tile += 1) {
      const left = Math.max(view.x(tile * length), 0);
      const right = Math.min(view.x((tile + 1) * length), view.width);
      const block = this.cache.block(level, tile, track.id);
      if (block) this.add(block, left, right);
      else {
        sharp = false;
        if (!this.coarser(level, tile, track.id, left, right)) {
          this.finer(level, tile, track.id, FINER_LEVELS);
        }
      }
    }
    return sharp;
  }

  private coarser(level: number, tile: number, track: number, left: number, right: number) {
    const top = this.cache.topLevel + 1;
    for (let up = level + 1; up <= top; up += 1) {
      const block = this.cache.block(up, Math.floor(tile / 2 ** (up - level)), track);
      if (!block) continue;
      this.add(block, left, right);
      return true;
    }
    return false;
  }

  private finer(level: number, tile: number, track: number, deep: number): void {
    if (deep === 0 || level <= 10) return;
    const { view } = this;
    const length = tileLength(level - 1);
    for (let half = tile * 2; half <= tile * 2 + 1; half += 1) {
      const left = Math.max(view.x(half * length), 0);
      const right = Math.min(view.x((half + 1) * length), view.width);
      if (right <= left) continue;
      const block = this.cache.block(level - 1, half, track);
      if (block) this.add(block, left, right);
      else this.finer(level - 1, half, track, deep - 1);
    }
  }

  private add(block: Block, left: number, right: number): void {
    const last = this.nPieces > 0 ? this.pieces[this.nPieces - 1]! : null;
    if (last?.block === block) {
      last.right = right;
      return;
    }
    const piece = (this.pieces[this.nPieces] ??= { block, left, right });
    piece.block = block;
    piece.left = left;
    piece.right = right;
    this.nPieces += 1;
  }

  /** A block that is far too coarse: what of it is seen is one cell, if that. */
  private byHand(
    block: Block,
    left: number,
    right: number,
    row: Row,
    top: number,
    palette: Palette,
  ): void {
    const { view, painter } = this;
    const { spans, laneStarts } = block;
    for (let lane = 0; lane + 1 < laneStarts.length; lane += 1) {
      const first = block.find(lane, view.time(left), Infinity);
      if (first < 0) continue;
      for (let at = first; at < laneStarts[lane + 1]! && block.start(at) < view.to; at += 1) {
        const x0 = Math.max(view.x(block.start(at)), left);
        const x1 = Math.min(view.x(block.end(at)), right);
        if (x1 <= x0) continue;
        const own = palette.kinds[spans.kind[at]!] ?? palette.strongLine;
        const faded = spans.count[at]! > 1 ? mix(palette.ground, own, 0.4) : own;
        painter.rect(x0, top + lane * row.pitch, x1 - x0, row.bar, faded);
      }
    }
  }

  /** Names of the row's spans, each once over all its pieces. */
  labels(row: Row, top: number, lights: Lights, palette: Palette): void {
    if (row.pitch < LEAST_TEXT_PITCH) return;
    this.collect(row.track!);
    const { view } = this;
    const lanes = row.track!.lanes;
    for (let at = 0; at < this.nPieces; at += 1) {
      const { block, left, right } = this.pieces[at]!;
      const { spans, named } = block;
      const goesOnTo = at + 1 < this.nPieces ? right - 0.5 : Infinity;
      for (let n = 0; n < named.length; n += 1) {
        const span = named[n]!;
        let x0 = Math.max(view.x(block.start(span)), left);
        const x1 = Math.min(view.x(block.end(span)), right);
        if (x1 <= x0) continue;
        const lane = spans.lane[span]!;
        const before = this.openBlock[lane];
        if (before) {
          if (before.spans.event[this.openAt[lane]!] === spans.event[span]) {
            x0 = this.openLeft[lane]!;
          } else {
            this.flush(lane, row, top, lights, palette);
          }
          this.openBlock[lane] = null;
        }
        if (x1 >= goesOnTo) {
          this.openBlock[lane] = block;
          this.openAt[lane] = span;
          this.openLeft[lane] = x0;
          this.openRight[lane] = x1;
        } else {
          this.label(block, span, x0, x1, row, top, lights, palette);
        }
      }
    }
    for (let lane = 0; lane < lanes; lane += 1) {
      if (this.openBlock[lane]) this.flush(lane, row, top, lights, palette);
    }
  }

  private flush(lane: number, row: Row, top: number, lights: Lights, palette: Palette): void {
    const block = this.openBlock[lane]!;
    const [x0, x1] = [this.openLeft[lane]!, this.openRight[lane]!];
    this.label(block, this.openAt[lane]!, x0, x1, row, top, lights, palette);
    this.openBlock[lane] = null;
  }

  private label(
    block: Block,
    span: number,
    x0: number,
    x1: number,
    row: Row,
    top: number,
    lights: Lights,
    palette: Palette,
  ): void {
    const { spans } = block;
    const x = x0 + LABEL_PAD;
    const room = x1 - x - LABEL_PAD;
    if (room < LEAST_LABEL - 2 * LABEL_PAD) return;
    const name = spans.names[spans.name[span]!];
    if (!name) return;
    const middle = top + spans.lane[span]! * row.pitch + row.bar / 2;
    const faded = lights.lit.size > 0 && !lights.lit.has(spans.event[span]!);
    const tint = faded ? palette.faint : (palette.onKinds[spans.kind[span]!] ?? palette.text);
    this.painter.text(x, middle, name, tint, room);
  }

  /** What lies at a place of a row: the block and its span, or nothing. */
  find(row: Row, time: number, lane: number, slack: number): { block: Block; at: number } | null {
    this.collect(row.track!);
    const x = this.view.x(time);
    for (let it = 0; it < this.nPieces; it += 1) {
      const { block, left, right } = this.pieces[it]!;
      if (x < left || x > right) continue;
      const at = block.find(lane, time, slack);
      if (at >= 0) return { block, at };
    }
    return null;
  }

  /** Values over time: an area with a line on top; what a cell hides between is a lighter bar. */
  counter(row: Row, top: number, palette: Palette): void {
    const track = row.track!;
    const { view, painter } = this;
    const { min, max } = scaleOf(track);
    const [high, low] = [top + 4, top + row.height - 5];
    const y = (value: number) => low - ((value - min) / (max - min || 1)) * (low - high);
    const fill = withAlpha(palette.accent, 0.18);
    const spread = withAlpha(palette.accent, 0.4);
    let x = 0;
    let value = this.valueBefore(track, view.from);
    const until = (end: number): void => {
      // Whole pixels: where two areas overlapped, the edge would be darker.
      const next = Math.round(end);
      if (value !== null && next > x) {
        painter.rect(x, y(value), next - x, low - y(value), fill);
        painter.rect(x, y(value), next - x, 1, palette.accent);
      }
      x = next;
    };
    this.eachCell(track, (time, cell) => {
      const at = view.x(time);
      if (at < 0) {
        value = cell[3];
        return;
      }
      until(Math.min(at, view.width));
      // Up from the value before and down to the next, so that no spike is lost between pixels.
      const [most, least] = [
        Math.max(cell[2], value ?? cell[2]),
        Math.min(cell[1], value ?? cell[1]),
      ];
      if (most > least) painter.rect(x, y(most), 1, y(least) - y(most), spread);
      value = cell[3];
    });
    until(Math.min(view.x(track.last_ps ?? view.to), view.width));
    painter.rect(0, low, view.width, 1, palette.line);
  }

  private eachCell(track: Track, each: (time: number, cell: CounterCellOf) => void): void {
    const { view } = this;
    let level = view.level;
    const top = this.cache.topLevel + 1;
    // The finest level of which all tiles are there.
    for (; level <= top; level += 1) if (this.counterIsThere(track, level)) break;
    const length = tileLength(level);
    const last = Math.floor(view.to / length);
    for (let tile = Math.floor(view.from / length); tile <= last; tile += 1) {
      const block = this.cache.counter(level, tile, track.id);
      if (!block) continue;
      const cellLength = block.length / 1024;
      for (const cell of block.cells) each(block.begin + cell[0] * cellLength, cell);
    }
  }

  private counterIsThere(track: Track, level: number): boolean {
    const { view } = this;
    const length = tileLength(level);
    const first = Math.max(view.from, track.first_ps ?? Infinity);
    const last = Math.floor(Math.min(view.to, track.last_ps ?? -Infinity) / length);
    for (let tile = Math.floor(first / length); tile <= last; tile += 1) {
      if (!this.cache.counter(level, tile, track.id)) return false;
    }
    return true;
  }

  /** The last value that is surely from before a time; null where that is not known. */
  valueBefore(track: Track, time: number): number | null {
    for (let level = this.view.level; level <= this.cache.topLevel + 1; level += 1) {
      const length = tileLength(level);
      for (let tile = Math.floor(time / length), back = 0; back < 2; tile -= 1, back += 1) {
        const block = this.cache.counter(level, tile, track.id);
        if (!block) continue;
        const cellLength = length / 1024;
        for (let at = block.cells.length - 1; at >= 0; at -= 1) {
          const cell = block.cells[at]!;
          if (block.begin + (cell[0] + 1) * cellLength <= time) return cell[3];
        }
      }
    }
    return null;
  }
}

type CounterCellOf = [number, number, number, number];

/** A scale from nought, unless values lie below it. */
export function scaleOf(track: Track): { min: number; max: number } {
  const { min, max } = track.counter!;
  return { min: Math.min(min, 0), max: Math.max(max, 0) };
}
