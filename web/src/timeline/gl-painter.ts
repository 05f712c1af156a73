// Draws with WebGL2: spans from what a block holds on the GPU, the rest in one batch.
//
// A span is four equal vertices that know their corner by their number. Instances would take a
// quarter of the memory, but software renderers draw each of them on its own, ten times slower.

import { SPAN_WORDS, type Block, type Lights } from "./block";
import { Glyphs } from "./glyphs";
import {
  FAINTEST,
  LIT_LEAST,
  type BlockPlace,
  type Painter,
  type Palette,
  type Rgba,
} from "./painter";

const SPAN_VERTEX = `#version 300 es
precision highp float;
layout(location = 0) in highp uvec3 span;
uniform vec2 screen;
uniform vec4 tile;   // x, width, clipped at the left, at the right; all in device pixels
uniform vec4 row;    // top, pitch, bar, gap that tells neighbours apart
uniform float dimmed;
uniform vec3 ground;
uniform sampler2D kinds;
flat out vec4 colour;
const float PART = 1.0 / 4294967296.0;
const float FAINTEST = ${FAINTEST.toFixed(3)};
const float LIT_LEAST = ${LIT_LEAST.toFixed(3)};
void main() {
  uint lane = span.z & 255u;
  uint kind = (span.z >> 8) & 255u;
  float fill = float((span.z >> 16) & 255u) / 255.0;
  uint flags = span.z >> 24;
  // What is narrower than a pixel fills only a part of the one that it is drawn as.
  float busy = fill * clamp((float(span.y) - float(span.x)) * PART * tile.y, 0.0, 1.0);
  float left = floor(tile.x + float(span.x) * PART * tile.y + 0.5);
  float right = floor(tile.x + float(span.y) * PART * tile.y + 0.5);
  float hatch = 0.0;
  bool continues = (flags & 4u) != 0u;
  if (right - left > 3.0 * row.w || continues) {
    if (span.y != 0xffffffffu) right -= row.w;
    hatch = (flags & 2u) != 0u ? 1.0 : 0.0;
  }
  if (!continues) right = max(right, left + 1.0);
  bool hidden = right <= tile.z || left >= tile.w;
  left = max(left, tile.z);
  right = min(right, tile.w);
  float top = floor(row.x + float(lane) * row.y + 0.5);
  float bottom = max(floor(row.x + float(lane) * row.y + row.z + 0.5), top + 1.0);
  vec3 own = texelFetch(kinds, ivec2(int(kind), 0), 0).rgb;
  if ((flags & 1u) != 0u) busy = max(busy, LIT_LEAST);
  if (busy < 1.0 && (flags & 4u) == 0u) own = mix(ground, own, FAINTEST + (1.0 - FAINTEST) * busy);
  if ((flags & 1u) == 0u) own = mix(own, ground, dimmed);
  colour = vec4(own, hatch);
  vec2 at = vec2((gl_VertexID & 1) == 0 ? left : right, (gl_VertexID & 2) == 0 ? top : bottom);
  vec2 place = at / screen * 2.0 - 1.0;
  gl_Position = hidden ? vec4(2.0, 2.0, 0.0, 1.0) : vec4(place.x, -place.y, 0.0, 1.0);
}`;

const SPAN_FRAGMENT = `#version 300 es
precision mediump float;
flat in vec4 colour;
uniform highp vec3 ground;
out vec4 pixel;
void main() {
  vec3 own = colour.rgb;
  if (colour.a > 0.5 && mod(gl_FragCoord.x + gl_FragCoord.y, 6.0) < 2.0) own = mix(own, ground, 0.45);
  pixel = vec4(own, 1.0);
}`;

const QUAD_VERTEX = `#version 300 es
precision highp float;
layout(location = 0) in vec2 at;        // in device pixels
layout(location = 1) in vec2 texel;
layout(location = 2) in vec4 tint;
uniform vec2 screen;
uniform vec2 atlas;
flat out vec4 colour;
out vec2 uv;
void main() {
  uv = texel / atlas;
  colour = tint;
  vec2 place = at / screen * 2.0 - 1.0;
  gl_Position = vec4(place.x, -place.y, 0.0, 1.0);
}`;

const QUAD_FRAGMENT = `#version 300 es
precision mediump float;
flat in vec4 colour;
in vec2 uv;
uniform sampler2D letters;
out vec4 pixel;
void main() {
  float share = texture(letters, uv).a * colour.a;
  pixel = vec4(colour.rgb * share, share);
}`;

/** Words of a corner: two floats, two short numbers, a colour. */
const CORNER_WORDS = 4;
const QUAD_BYTES = 4 * CORNER_WORDS * 4;
const MOST_QUADS = 8192;

interface Drawn {
  buffer: WebGLBuffer;
  array: WebGLVertexArrayObject;
}

/** Browsers do not always own up to it when they are asked for a fast one: the name does. */
function isImitated(): boolean {
  // A canvas that was asked for one kind of pen gives no other.
  const gl = document.createElement("canvas").getContext("webgl2");
  const about = gl?.getExtension("WEBGL_debug_renderer_info");
  const name = String(gl?.getParameter(about ? about.UNMASKED_RENDERER_WEBGL : gl.RENDERER) ?? "");
  gl?.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(name);
}

export class GlPainter implements Painter {
  readonly name = "webgl2";
  private readonly gl: WebGL2RenderingContext;
  private readonly spanProgram: WebGLProgram;
  private readonly quadProgram: WebGLProgram;
  private readonly at: Record<string, WebGLUniformLocation | null> = {};
  private readonly kinds: WebGLTexture;
  private readonly letters: WebGLTexture;
  /** Two triangles for every four vertices, for as many as any block has. */
  private readonly corners: WebGLBuffer;
  private nCorners = 0;
  private readonly quadBuffer: WebGLBuffer;
  private readonly quadArray: WebGLVertexArrayObject;
  private readonly bytes = new ArrayBuffer(MOST_QUADS * QUAD_BYTES);
  private readonly floats = new Float32Array(this.bytes);
  private readonly words = new Uint32Array(this.bytes);
  private readonly all = new Uint8Array(this.bytes);
  private n = 0;
  private word = 0;
  private glyphs = new Glyphs(1);
  private ratio = 1;
  private height = 0;
  private ground: [number, number, number] = [1, 1, 1];
  private dimmed = 0;
  /** Which program is bound. */
  private drawing: "spans" | "quads" | null = null;

  /**
   * Null where the browser has no WebGL2, or only one that a processor imitates: a plain canvas
   * is ten times quicker there.
   */
  /** Null where there is no WebGL2, or only one that a processor imitates. */
  static on(canvas: HTMLCanvasElement, evenIfSlow: boolean): GlPainter | null {
    if (!evenIfSlow && isImitated()) return null;
    const gl = canvas.getContext("webgl2", {
      failIfMajorPerformanceCaveat: !evenIfSlow,
      alpha: false,
      antialias: false,
      depth: false,
      stencil: false,
      powerPreference: "high-performance",
    });
    return gl && new GlPainter(canvas, gl);
  }

  private constructor(
    private readonly canvas: HTMLCanvasElement,
    gl: WebGL2RenderingContext,
  ) {
    this.gl = gl;
    this.spanProgram = program(gl, SPAN_VERTEX, SPAN_FRAGMENT);
    this.quadProgram = program(gl, QUAD_VERTEX, QUAD_FRAGMENT);
    for (const name of ["screen", "tile", "row", "dimmed", "ground", "kinds"]) {
      this.at[name] = gl.getUniformLocation(this.spanProgram, name);
    }
    for (const name of ["screen", "atlas", "letters"]) {
      this.at[`quad ${name}`] = gl.getUniformLocation(this.quadProgram, name);
    }
    this.kinds = texture(gl, gl.NEAREST);
    this.letters = texture(gl, gl.NEAREST);
    this.corners = gl.createBuffer();
    this.quadBuffer = gl.createBuffer();
    this.quadArray = gl.createVertexArray();
    gl.bindVertexArray(this.quadArray);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.quadBuffer);
    const stride = CORNER_WORDS * 4;
    for (const at of [0, 1, 2]) gl.enableVertexAttribArray(at);
    gl.vertexAttribPointer(0, 2, gl.FLOAT, false, stride, 0);
    gl.vertexAttribPointer(1, 2, gl.UNSIGNED_SHORT, false, stride, 8);
    gl.vertexAttribPointer(2, 4, gl.UNSIGNED_BYTE, true, stride, 12);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.corners);
    gl.bindVertexArray(null);
    this.growCorners(MOST_QUADS);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.enable(gl.SCISSOR_TEST);
  }

  resize(width: number, height: number, ratio: number): void {
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.height = height;
    if (ratio !== this.ratio) this.glyphs = new Glyphs(ratio);
    this.ratio = ratio;
  }

  use(palette: Palette): void {
    const { gl } = this;
    const colours = new Uint32Array(256);
    colours.set(palette.kinds.slice(0, 256));
    gl.bindTexture(gl.TEXTURE_2D, this.kinds);
    const texels = new Uint8Array(colours.buffer);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 256, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, texels);
    const part = (shift: number) => ((palette.ground >>> shift) & 255) / 255;
    this.ground = [part(0), part(8), part(16)];
  }

  dim(share: number): void {
    this.dimmed = share;
  }

  begin(): void {
    const { gl, canvas } = this;
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.scissor(0, 0, canvas.width, canvas.height);
    gl.clearColor(...this.ground, 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    this.drawing = null;
    this.n = 0;
  }

  /** All is drawn in the order of the calls. */
  over(): void {}

  clip(top: number, bottom: number): void {
    this.flush();
    const { ratio } = this;
    const from = Math.round((this.height - bottom) * ratio);
    const rows = Math.max(Math.round((bottom - top) * ratio), 0);
    this.gl.scissor(0, from, this.canvas.width, rows);
  }

  spans(block: Block, lights: Lights, place: Readonly<BlockPlace>): void {
    if (block.n === 0) return;
    const { gl, at, ratio } = this;
    if (this.n > 0) this.flush();
    if (this.drawing !== "spans") {
      this.drawing = "spans";
      gl.useProgram(this.spanProgram);
      gl.disable(gl.BLEND);
      gl.activeTexture(gl.TEXTURE0);
      gl.bindTexture(gl.TEXTURE_2D, this.kinds);
      gl.uniform1i(at["kinds"]!, 0);
      gl.uniform2f(at["screen"]!, this.canvas.width, this.canvas.height);
      gl.uniform1f(at["dimmed"]!, this.dimmed);
      gl.uniform3f(at["ground"]!, ...this.ground);
    }
    let drawn = block.drawn as Drawn | null;
    if (!drawn || block.drawnMarks !== lights.marks) {
      drawn ??= this.hold(block);
      gl.bindBuffer(gl.ARRAY_BUFFER, drawn.buffer);
      gl.bufferData(gl.ARRAY_BUFFER, fourTimes(block.words(lights)), gl.STATIC_DRAW);
      this.growCorners(block.n);
      block.drawnMarks = lights.marks;
    }
    gl.uniform4f(
      at["tile"]!,
      place.x * ratio,
      place.width * ratio,
      Math.round(place.clipLeft * ratio),
      Math.round(place.clipRight * ratio),
    );
    gl.uniform4f(at["row"]!, place.top * ratio, place.pitch * ratio, place.bar * ratio, ratio);
    gl.bindVertexArray(drawn.array);
    gl.drawElements(gl.TRIANGLES, block.n * 6, gl.UNSIGNED_INT, 0);
  }

  private growCorners(quads: number): void {
    if (quads <= this.nCorners) return;
    const { gl } = this;
    this.nCorners = Math.max(quads, this.nCorners * 2);
    const places = new Uint32Array(this.nCorners * 6);
    for (let at = 0; at < this.nCorners; at += 1) {
      places.set([at * 4, at * 4 + 1, at * 4 + 2, at * 4 + 2, at * 4 + 1, at * 4 + 3], at * 6);
    }
    // Bound without an array of vertices, which would remember it.
    gl.bindVertexArray(null);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.corners);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, places, gl.STATIC_DRAW);
  }

  private hold(block: Block): Drawn {
    const { gl } = this;
    const drawn = { buffer: gl.createBuffer(), array: gl.createVertexArray() };
    gl.bindVertexArray(drawn.array);
    gl.bindBuffer(gl.ARRAY_BUFFER, drawn.buffer);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribIPointer(0, SPAN_WORDS, gl.UNSIGNED_INT, SPAN_WORDS * 4, 0);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.corners);
    block.drawn = drawn;
    return drawn;
  }

  rect(x: number, y: number, width: number, height: number, tint: Rgba): void {
    const { ratio } = this;
    const left = Math.round(x * ratio);
    const top = Math.round(y * ratio);
    const right = Math.max(Math.round((x + width) * ratio), left + 1);
    const bottom = Math.max(Math.round((y + height) * ratio), top + 1);
    this.put(left, top, right, bottom, 1, 1, 0, 0, tint);
  }

  line(x0: number, y0: number, x1: number, y1: number, tint: Rgba): void {
    const { ratio } = this;
    const half = 0.75 * ratio;
    const length = Math.hypot(x1 - x0, y1 - y0) || 1;
    const [dx, dy] = [((y0 - y1) / length) * half, ((x1 - x0) / length) * half];
    this.quad();
    this.corner(x0 * ratio - dx, y0 * ratio - dy, 1, 1, tint);
    this.corner(x1 * ratio - dx, y1 * ratio - dy, 1, 1, tint);
    this.corner(x0 * ratio + dx, y0 * ratio + dy, 1, 1, tint);
    this.corner(x1 * ratio + dx, y1 * ratio + dy, 1, 1, tint);
  }

  text(x: number, middle: number, text: string, tint: Rgba, room = Infinity): number {
    const { glyphs, ratio } = this;
    const height = glyphs.lineHeight;
    const top = Math.round(middle * ratio - height / 2);
    let end = room;
    if (room !== Infinity && this.measure(text) > room) {
      end = room - glyphs.of("…").advance;
      if (end < 8) return 0;
    }
    let pen = 0;
    for (const letter of text) {
      if (pen + glyphs.of(letter).advance > end) {
        pen += this.letter("…", x + pen, top, tint);
        break;
      }
      pen += this.letter(letter, x + pen, top, tint);
    }
    return pen;
  }

  private letter(letter: string, x: number, top: number, tint: Rgba): number {
    const { glyphs, ratio } = this;
    const glyph = glyphs.of(letter);
    const left = Math.round(x * ratio) - 1;
    const { u, v, width } = glyph;
    const height = glyphs.lineHeight;
    this.put(left, top, left + width, top + height, u, v, width, height, tint);
    return glyph.advance;
  }

  measure(text: string): number {
    let width = 0;
    for (const letter of text) width += this.glyphs.of(letter).advance;
    return width;
  }

  private put(
    x0: number,
    y0: number,
    x1: number,
    y1: number,
    u: number,
    v: number,
    width: number,
    height: number,
    tint: Rgba,
  ): void {
    this.quad();
    this.corner(x0, y0, u, v, tint);
    this.corner(x1, y0, u + width, v, tint);
    this.corner(x0, y1, u, v + height, tint);
    this.corner(x1, y1, u + width, v + height, tint);
  }

  /** Room for four corners. */
  private quad(): void {
    if (this.n === MOST_QUADS) this.flush();
    this.n += 1;
    this.word = (this.n - 1) * 4 * CORNER_WORDS;
  }

  private corner(x: number, y: number, u: number, v: number, tint: Rgba): void {
    const { word } = this;
    this.floats[word] = x;
    this.floats[word + 1] = y;
    this.words[word + 2] = u | (v << 16);
    this.words[word + 3] = tint;
    this.word = word + CORNER_WORDS;
  }

  private flush(): void {
    if (this.n === 0) return;
    const { gl, glyphs, at } = this;
    if (this.drawing !== "quads") {
      this.drawing = "quads";
      gl.useProgram(this.quadProgram);
      gl.enable(gl.BLEND);
      gl.activeTexture(gl.TEXTURE0);
      gl.bindTexture(gl.TEXTURE_2D, this.letters);
      gl.uniform1i(at["quad letters"]!, 0);
      gl.uniform2f(at["quad screen"]!, this.canvas.width, this.canvas.height);
      gl.uniform2f(at["quad atlas"]!, glyphs.width, glyphs.height);
    }
    if (glyphs.changed) {
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, glyphs.canvas);
      glyphs.changed = false;
    }
    gl.bindVertexArray(this.quadArray);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.quadBuffer);
    gl.bufferData(gl.ARRAY_BUFFER, this.all, gl.DYNAMIC_DRAW, 0, this.n * QUAD_BYTES);
    gl.drawElements(gl.TRIANGLES, this.n * 6, gl.UNSIGNED_INT, 0);
    this.n = 0;
  }

  end(): void {
    this.flush();
    this.gl.bindVertexArray(null);
  }

  forget(block: Block): void {
    const drawn = block.drawn as Drawn | null;
    if (!drawn) return;
    this.gl.deleteVertexArray(drawn.array);
    this.gl.deleteBuffer(drawn.buffer);
    block.drawn = null;
    block.drawnMarks = -1;
  }

  close(): void {
    this.gl.getExtension("WEBGL_lose_context")?.loseContext();
  }
}

/** Every span's words once for each corner. */
function fourTimes(words: Uint32Array): Uint32Array {
  const out = new Uint32Array(words.length * 4);
  for (let from = 0, to = 0; from < words.length; from += SPAN_WORDS) {
    for (let corner = 0; corner < 4; corner += 1, to += SPAN_WORDS) {
      out[to] = words[from]!;
      out[to + 1] = words[from + 1]!;
      out[to + 2] = words[from + 2]!;
    }
  }
  return out;
}

function texture(gl: WebGL2RenderingContext, filter: number): WebGLTexture {
  const made = gl.createTexture();
  gl.bindTexture(gl.TEXTURE_2D, made);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, filter);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, filter);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
  return made;
}

function program(gl: WebGL2RenderingContext, vertex: string, fragment: string): WebGLProgram {
  const made = gl.createProgram();
  for (const [type, text] of [
    [gl.VERTEX_SHADER, vertex],
    [gl.FRAGMENT_SHADER, fragment],
  ] as const) {
    const shader = gl.createShader(type);
    if (!shader) throw new Error("the graphics context is gone");
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS)) {
    throw new Error(`the timeline's shaders do not link: ${gl.getProgramInfoLog(made)}`);
  }
  return made;
}
