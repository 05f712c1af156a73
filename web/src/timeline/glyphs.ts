// Letters as a texture: each is written once by a 2-D canvas and then copied wherever it stands.

import { FONT_PX, fontFamily } from "./painter";

export interface Glyph {
  /** In the texture, in its pixels. */
  u: number;
  v: number;
  width: number;
  /** How far the next letter is, in CSS pixels. */
  advance: number;
}

const WIDTH = 1024;
const HEIGHT = 512;
/** Room on each side for what hangs over. */
const MARGIN = 1;

export class Glyphs {
  readonly width = WIDTH;
  readonly height = HEIGHT;
  /** Of every glyph, in pixels of the texture. */
  readonly lineHeight: number;
  readonly canvas: HTMLCanvasElement;
  /** Something was written that the texture does not have yet. */
  changed = true;
  private readonly pen: CanvasRenderingContext2D;
  private readonly known = new Map<string, Glyph>();
  private readonly ascii: (Glyph | undefined)[] = new Array<undefined>(128).fill(undefined);
  private x = 4;
  private y = 0;

  constructor(private readonly ratio: number) {
    this.canvas = document.createElement("canvas");
    this.canvas.width = WIDTH;
    this.canvas.height = HEIGHT;
    const pen = this.canvas.getContext("2d", { willReadFrequently: true });
    if (!pen) throw new Error("this browser cannot draw text on a canvas");
    this.pen = pen;
    pen.font = `${FONT_PX * ratio}px ${fontFamily()}`;
    pen.textBaseline = "middle";
    pen.fillStyle = "#fff";
    this.lineHeight = Math.ceil(FONT_PX * ratio * 1.5);
    // What plain rectangles are filled with.
    pen.fillRect(0, 0, 3, 3);
  }

  of(letter: string): Glyph {
    const code = letter.charCodeAt(0);
    const quick = letter.length === 1 && code < 128 ? this.ascii[code] : this.known.get(letter);
    return quick ?? this.write(letter);
  }

  private write(letter: string): Glyph {
    const measured = this.pen.measureText(letter).width;
    const width = Math.ceil(measured) + 2 * MARGIN;
    if (this.x + width > WIDTH) {
      this.x = 0;
      this.y += this.lineHeight;
    }
    // A trace with so many different letters shows the last of them as blanks.
    const fits = this.y + this.lineHeight <= HEIGHT;
    const made: Glyph = {
      u: this.x,
      v: this.y,
      width: fits ? width : 0,
      advance: measured / this.ratio,
    };
    if (fits) {
      this.pen.fillText(letter, this.x + MARGIN, this.y + this.lineHeight / 2);
      this.x += width;
      this.changed = true;
    }
    this.known.set(letter, made);
    const code = letter.charCodeAt(0);
    if (letter.length === 1 && code < 128) this.ascii[code] = made;
    return made;
  }
}
