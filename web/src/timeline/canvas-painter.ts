// Draws on a 2-D canvas, where there is no WebGL2: slower, the same look.

import { CONTINUES, LIT, MERGED, SPAN_WORDS, type Block, type Lights } from "./block";
import {
  FONT_PX,
  fontFamily,
  mix,
  type BlockPlace,
  type Painter,
  type Palette,
  type Rgba,
} from "./painter";

import { OPEN_END } from "./tiles";

const PART = 1 / 2 ** 32;

export class CanvasPainter implements Painter {
  readonly name = "canvas";
  private readonly pen: CanvasRenderingContext2D;
  private palette: Palette | null = null;
  private ratio = 1;
  private width = 0;
  private height = 0;
  private dimmed = 0;
  private readonly css = new Map<Rgba, string>();
  private readonly fills = new Map<number, string>();
  private readonly advances = new Map<string, number>();

  constructor(private readonly canvas: HTMLCanvasElement) {
    const pen = canvas.getContext("2d", { alpha: false });
    if (!pen) throw new Error("this browser cannot draw on a canvas");
    this.pen = pen;
  }

  resize(width: number, height: number, ratio: number): void {
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    [this.width, this.height, this.ratio] = [width, height, ratio];
    this.pen.font = `${FONT_PX}px ${fontFamily()}`;
  }

  use(palette: Palette): void {
    this.palette = palette;
    this.fills.clear();
  }

  dim(share: number): void {
    if (share !== this.dimmed) this.fills.clear();
    this.dimmed = share;
  }

  begin(): void {
    const { pen, ratio } = this;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.textBaseline = "middle";
    pen.fillStyle = this.style(this.palette?.ground ?? 0xffff_ffff);
    pen.fillRect(0, 0, this.width, this.height);
    pen.save();
  }

  clip(top: number, bottom: number): void {
    const { pen } = this;
    pen.restore();
    pen.save();
    pen.beginPath();
    pen.rect(0, top, this.width, Math.max(bottom - top, 0));
    pen.clip();
  }

  private style(of: Rgba): string {
    let text = this.css.get(of);
    if (text === undefined) {
      const alpha = (of >>> 24) / 255;
      text = `rgba(${of & 255},${(of >>> 8) & 255},${(of >>> 16) & 255},${alpha})`;
      this.css.set(of, text);
    }
    return text;
  }

  spans(block: Block, lights: Lights, place: Readonly<BlockPlace>): void {
    if (!this.palette) return;
    if (!block.drawn || block.drawnMarks !== lights.marks) {
      block.drawn = block.words(lights);
      block.drawnMarks = lights.marks;
    }
    const spans = block.drawn as Uint32Array;
    const { pen } = this;
    const height = Math.max(place.bar, 1);
    // Zoomed out there are more spans than pixels: what touches and looks alike is one rectangle,
    // and of what shares a pixel the first is drawn.
    let from = 0;
    let to = 0;
    let row = -1;
    let painted = "";
    for (let at = 0; at < spans.length; at += SPAN_WORDS) {
      let left = Math.round(place.x + spans[at]! * PART * place.width);
      if (left >= place.clipRight) continue;
      let right = Math.round(place.x + spans[at + 1]! * PART * place.width);
      const word = spans[at + 2]!;
      const continues = (word >>> 24) & CONTINUES;
      if ((right - left > 3 || continues) && spans[at + 1] !== OPEN_END) right -= 1;
      if (!continues) right = Math.max(right, left + 1);
      if (right <= place.clipLeft || right <= left) continue;
      left = Math.max(left, place.clipLeft);
      right = Math.min(right, place.clipRight);
      const top = Math.round(place.top + (word & 255) * place.pitch);
      if (top === row && left < to) {
        left = to;
        if (right <= left) continue;
      }
      const own = this.fillOf(word);
      if (top === row && left === to && own === painted) {
        to = right;
        continue;
      }
      if (to > from) pen.fillRect(from, row, to - from, height);
      if (own !== painted) pen.fillStyle = own;
      from = left;
      to = right;
      row = top;
      painted = own;
    }
    if (to > from) pen.fillRect(from, row, to - from, height);
  }

  /** The colour of a span, by its kind, how full it is and whether it is lit. */
  private fillOf(word: number): string {
    const flags = word >>> 24;
    const fill = flags & MERGED ? (word >>> 16) & 0xc0 : 0;
    const key = ((word >>> 8) & 255) | (fill << 8) | ((flags & (LIT | MERGED)) << 16);
    let text = this.fills.get(key);
    if (text === undefined) {
      const palette = this.palette!;
      let own = palette.kinds[(word >>> 8) & 255] ?? palette.strongLine;
      if (flags & MERGED) own = mix(palette.ground, own, 0.3 + (0.6 * (fill | 0x3f)) / 255);
      if (this.dimmed > 0 && !(flags & LIT)) own = mix(own, palette.ground, this.dimmed);
      text = this.style(own);
      this.fills.set(key, text);
    }
    return text;
  }

  rect(x: number, y: number, width: number, height: number, rgba: Rgba): void {
    this.pen.fillStyle = this.style(rgba);
    const [left, top] = [Math.round(x), Math.round(y)];
    const right = Math.max(Math.round(x + width), left + 1);
    const bottom = Math.max(Math.round(y + height), top + 1);
    this.pen.fillRect(left, top, right - left, bottom - top);
  }

  line(x0: number, y0: number, x1: number, y1: number, rgba: Rgba): void {
    const { pen } = this;
    pen.strokeStyle = this.style(rgba);
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.lineTo(x1, y1);
    pen.stroke();
  }

  text(x: number, middle: number, text: string, rgba: Rgba, room = Infinity): number {
    let shown = text;
    if (room !== Infinity && this.measure(text) > room) {
      const end = room - this.measure("…");
      if (end < 8) return 0;
      let width = 0;
      let at = 0;
      for (const letter of text) {
        width += this.measure(letter);
        if (width > end) break;
        at += letter.length;
      }
      shown = `${text.slice(0, at)}…`;
    }
    this.pen.fillStyle = this.style(rgba);
    this.pen.fillText(shown, Math.round(x), Math.round(middle) + 0.5);
    return this.measure(shown);
  }

  measure(text: string): number {
    let width = 0;
    for (const letter of text) {
      let advance = this.advances.get(letter);
      if (advance === undefined) {
        advance = this.pen.measureText(letter).width;
        this.advances.set(letter, advance);
      }
      width += advance;
    }
    return width;
  }

  end(): void {
    this.pen.restore();
  }

  forget(block: Block): void {
    block.drawn = null;
    block.drawnMarks = -1;
  }

  close(): void {}
}
