// Draws with the processor, where there is no WebGL2: pixels of its own for what lies below, a
// 2-D canvas for text on top. A canvas takes a rectangle at a time, and zoomed out a frame has
// tens of thousands: as pixels they cost a tenth.

import { CONTINUES, LIT, SPAN_WORDS, type Block, type Lights } from "./block";
import {
  FAINTEST,
  FONT_PX,
  LIT_LEAST,
  fontFamily,
  mix,
  type BlockPlace,
  type Painter,
  type Palette,
  type Rgba,
} from "./painter";
import { OPEN_END } from "./tiles";

const PART = 1 / 2 ** 32;
/** Colours of spans: kind, how full in 32 grades, lit. */
const GRADES = 31;
const FILLS = 1 << 14;

export class CanvasPainter implements Painter {
  readonly name = "canvas";
  private readonly pen: CanvasRenderingContext2D;
  private palette: Palette | null = null;
  private ratio = 1;
  private width = 0;
  private height = 0;
  private dimmed = 0;
  private image = new ImageData(1, 1);
  private pixels = new Uint32Array(1);
  /** In device pixels; of what lies below. */
  private clipTop = 0;
  private clipBottom = 0;
  private below = true;
  private readonly css = new Map<Rgba, string>();
  /** Nought where not yet known: no colour is, being opaque. */
  private readonly fills = new Uint32Array(FILLS);
  private readonly advances = new Map<string, number>();

  constructor(private readonly canvas: HTMLCanvasElement) {
    const pen = canvas.getContext("2d", { alpha: false });
    if (!pen) throw new Error("this browser cannot draw on a canvas");
    this.pen = pen;
  }

  resize(width: number, height: number, ratio: number): void {
    const { canvas } = this;
    canvas.width = Math.max(Math.round(width * ratio), 1);
    canvas.height = Math.max(Math.round(height * ratio), 1);
    [this.width, this.height, this.ratio] = [width, height, ratio];
    this.image = new ImageData(canvas.width, canvas.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.pen.font = `${FONT_PX}px ${fontFamily()}`;
  }

  use(palette: Palette): void {
    this.palette = palette;
    this.fills.fill(0);
  }

  dim(share: number): void {
    if (share !== this.dimmed) this.fills.fill(0);
    this.dimmed = share;
  }

  begin(): void {
    this.below = true;
    this.clip(0, this.height);
    this.pixels.fill(this.palette?.ground ?? 0xffff_ffff);
  }

  over(): void {
    const { pen, ratio } = this;
    this.below = false;
    pen.putImageData(this.image, 0, 0);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.textBaseline = "middle";
    pen.save();
  }

  clip(top: number, bottom: number): void {
    const { pen, ratio } = this;
    if (this.below) {
      this.clipTop = Math.min(Math.max(Math.round(top * ratio), 0), this.image.height);
      this.clipBottom = Math.min(Math.max(Math.round(bottom * ratio), 0), this.image.height);
      return;
    }
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

  /** Zoomed out there are more spans than pixels: of what shares a pixel the first is drawn. */
  spans(block: Block, lights: Lights, place: Readonly<BlockPlace>): void {
    if (!this.palette) return;
    if (!block.drawn || block.drawnMarks !== lights.marks) {
      block.drawn = block.words(lights);
      block.drawnMarks = lights.marks;
    }
    const spans = block.drawn as Uint32Array;
    const { pixels, ratio, clipTop, clipBottom } = this;
    const stride = this.image.width;
    const clipLeft = Math.max(Math.round(place.clipLeft * ratio), 0);
    const clipRight = Math.min(Math.round(place.clipRight * ratio), stride);
    const x = place.x * ratio;
    const scale = place.width * ratio * PART;
    const gap = Math.max(Math.round(ratio), 1);
    for (let lane = 0; lane + 1 < block.laneStarts.length; lane += 1) {
      const y = Math.round(Math.round(place.top + lane * place.pitch) * ratio);
      const top = Math.max(y, clipTop);
      const bottom = Math.min(y + Math.max(Math.round(place.bar * ratio), 1), clipBottom);
      if (bottom <= top) continue;
      // One line of pixels, which is then copied to the others.
      const line = top * stride;
      let first = clipRight;
      let to = clipLeft;
      const end = block.laneStarts[lane + 1]! * SPAN_WORDS;
      for (let at = block.laneStarts[lane]! * SPAN_WORDS; at < end; at += SPAN_WORDS) {
        let left = Math.round(x + spans[at]! * scale);
        if (left >= clipRight) break;
        const exact = (spans[at + 1]! - spans[at]!) * scale;
        let right = Math.round(x + spans[at + 1]! * scale);
        const word = spans[at + 2]!;
        const continues = (word >>> 24) & CONTINUES;
        if ((right - left > 3 * gap || continues) && spans[at + 1] !== OPEN_END) right -= gap;
        if (!continues && right <= left) right = left + 1;
        if (left < to) left = to;
        if (right > clipRight) right = clipRight;
        if (right <= left) continue;
        const own = this.fillOf(word, exact < 1 ? exact : 1);
        if (right - left < 16)
          for (let px = line + left; px < line + right; px += 1) pixels[px] = own;
        else pixels.fill(own, line + left, line + right);
        if (first === clipRight) first = left;
        to = right;
      }
      for (let other = top + 1; other < bottom && to > first; other += 1) {
        pixels.copyWithin(other * stride + first, line + first, line + to);
      }
    }
  }

  /** The colour of a span, by its kind, how much of its pixels it fills and whether it is lit. */
  private fillOf(word: number, part: number): Rgba {
    const flags = word >>> 24;
    let busy = flags & CONTINUES ? 1 : (((word >>> 16) & 255) / 255) * part;
    if (flags & LIT && busy < LIT_LEAST) busy = LIT_LEAST;
    const grade = Math.round(busy * GRADES);
    const key = ((word >>> 8) & 255) | (grade << 8) | ((flags & LIT) << 13);
    return this.fills[key] || this.newFill(key, word, grade / GRADES);
  }

  private newFill(key: number, word: number, busy: number): Rgba {
    const palette = this.palette!;
    let own = palette.kinds[(word >>> 8) & 255] ?? palette.strongLine;
    if (busy < 1) own = mix(palette.ground, own, FAINTEST + (1 - FAINTEST) * busy);
    if (this.dimmed > 0 && !((word >>> 24) & LIT)) own = mix(own, palette.ground, this.dimmed);
    this.fills[key] = own;
    return own;
  }

  rect(x: number, y: number, width: number, height: number, rgba: Rgba): void {
    const [left, top] = [Math.round(x), Math.round(y)];
    const right = Math.max(Math.round(x + width), left + 1);
    const bottom = Math.max(Math.round(y + height), top + 1);
    if (this.below) {
      this.fill(left, top, right, bottom, rgba);
    } else {
      this.pen.fillStyle = this.style(rgba);
      this.pen.fillRect(left, top, right - left, bottom - top);
    }
  }

  private fill(left: number, top: number, right: number, bottom: number, rgba: Rgba): void {
    const { pixels, ratio } = this;
    const stride = this.image.width;
    const x0 = Math.max(Math.round(left * ratio), 0);
    const x1 = Math.min(Math.round(right * ratio), stride);
    const y0 = Math.max(Math.round(top * ratio), this.clipTop);
    const y1 = Math.min(Math.round(bottom * ratio), this.clipBottom);
    if (x1 <= x0) return;
    const alpha = (rgba >>> 24) / 255;
    for (let y = y0; y < y1; y += 1) {
      const line = y * stride;
      if (alpha === 1) {
        pixels.fill(rgba, line + x0, line + x1);
        continue;
      }
      // Neighbours are often alike.
      let [before, after] = [0, 0];
      for (let at = line + x0; at < line + x1; at += 1) {
        const own = pixels[at]!;
        if (own !== before) [before, after] = [own, mix(own, (rgba | 0xff00_0000) >>> 0, alpha)];
        pixels[at] = after;
      }
    }
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
