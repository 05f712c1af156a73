// What a frame is made of: spans of blocks, rectangles and text. WebGL2 draws it, or a 2-D canvas.

import type { Timeline } from "../data/types";
import { colour } from "../theme";
import type { Block, Lights } from "./block";

/** A colour as its bytes lie in memory: red first. */
export type Rgba = number;

export interface Palette {
  ground: Rgba;
  sunken: Rgba;
  raised: Rgba;
  line: Rgba;
  strongLine: Rgba;
  text: Rgba;
  faint: Rgba;
  accent: Rgba;
  accentGround: Rgba;
  /** By kind of event: the colour of its category, and that of text on it. */
  kinds: Rgba[];
  onKinds: Rgba[];
}

/** Where a block is drawn, in CSS pixels. */
export interface BlockPlace {
  /** Where its tile begins and how wide it is. */
  x: number;
  width: number;
  /** What of it may be seen. */
  clipLeft: number;
  clipRight: number;
  top: number;
  /** From one lane to the next, and what of that is filled. */
  pitch: number;
  bar: number;
}

/** Paints a frame: from `begin` on spans and rectangles, and after `over` what lies on top of them. */
export interface Painter {
  readonly name: "webgl2" | "canvas";
  resize(width: number, height: number, ratio: number): void;
  use(palette: Palette): void;
  /** How far unlit spans fade into the ground, 0 to 1. */
  dim(share: number): void;
  begin(): void;
  over(): void;
  /** What follows is seen only between these heights. */
  clip(top: number, bottom: number): void;
  spans(block: Block, lights: Lights, place: Readonly<BlockPlace>): void;
  rect(x: number, y: number, width: number, height: number, rgba: Rgba): void;
  line(x0: number, y0: number, x1: number, y1: number, rgba: Rgba): void;
  /** Written from its middle height; answers how wide it is. Cut off with … where it must be. */
  text(x: number, middle: number, text: string, rgba: Rgba, room?: number): number;
  measure(text: string): number;
  end(): void;
  /** Gives back what it holds for a block. */
  forget(block: Block): void;
  close(): void;
}

/** How strongly a span is drawn that fills nearly nothing of its pixel: still seen. */
export const FAINTEST = 0.1;
/** A lit span is drawn at least as if it filled this share of its pixel. */
export const LIT_LEAST = 0.7;

export const FONT_PX = 11;
export const fontFamily = (): string =>
  getComputedStyle(document.body).fontFamily || "system-ui, sans-serif";

export function rgba(red: number, green: number, blue: number, alpha = 255): Rgba {
  return (red | (green << 8) | (blue << 16) | (alpha << 24)) >>> 0;
}

export const withAlpha = (of: Rgba, alpha: number): Rgba =>
  ((of & 0xff_ffff) | (Math.round(alpha * 255) << 24)) >>> 0;

/** From `#rrggbb`, as all tokens are; a minifier may shorten it to `#rgb`. */
export function fromHex(text: string): Rgba {
  const digits = text.slice(1);
  const long = digits.length < 6 ? digits.replace(/./g, "$&$&") : digits;
  const value = Number.parseInt(long.slice(0, 6), 16);
  return rgba(value >> 16, (value >> 8) & 255, value & 255);
}

/** Of two colours the share of the second in place of the first. */
export function mix(a: Rgba, b: Rgba, share: number): Rgba {
  const part = (shift: number) => {
    const [from, to] = [(a >>> shift) & 255, (b >>> shift) & 255];
    return Math.round(from + (to - from) * share);
  };
  return rgba(part(0), part(8), part(16), part(24));
}

function luminance(of: Rgba): number {
  const part = (shift: number) => {
    const it = ((of >>> shift) & 255) / 255;
    return it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(0) + 0.7152 * part(8) + 0.0722 * part(16);
}

export function contrast(a: Rgba, b: Rgba): number {
  const [one, other] = [luminance(a), luminance(b)];
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
}

/** The colours of the theme that is on. */
export function palette(kinds: Timeline["kinds"]): Palette {
  const token = (name: string) => fromHex(colour(name));
  const [white, black] = [rgba(255, 255, 255), rgba(16, 22, 30)];
  const ofKinds = kinds.map((it) => token(it.category ?? "strong-line"));
  return {
    ground: token("ground"),
    sunken: token("sunken"),
    raised: token("raised"),
    line: token("line"),
    strongLine: token("strong-line"),
    text: token("text"),
    faint: token("faint"),
    accent: token("accent"),
    accentGround: token("accent-ground"),
    kinds: ofKinds,
    onKinds: ofKinds.map((it) => (contrast(it, white) >= contrast(it, black) ? white : black)),
  };
}
