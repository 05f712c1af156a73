// Loads a trace into Perfetto's trace processor, asks one query, and prints what it says.
//
// usage: node perfetto.mjs DIST TRACE SQL
//
// DIST is the folder of Perfetto's UI, whose engine is the trace processor as WebAssembly. Its worker is run here
// as in a browser, with the few things of a browser's worker that it asks for.
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";
import process from "node:process";

const [dist, trace, sql] = process.argv.slice(2);
const APPEND = 1;
const FINALIZE = 2;
const QUERY = 3;
// As much as the UI sends at once.
const PIECE = 32 << 20;

// --- the worker's surroundings

globalThis.self = globalThis;
globalThis.WorkerGlobalScope = class {};
globalThis.location = { href: "http://localhost/" };
globalThis.XMLHttpRequest = class {
  open(_, name) {
    this.file = path.join(dist, path.basename(name));
  }
  send() {
    this.response = fs.readFileSync(this.file);
  }
};
console.warn = console.log = () => {};
// It refuses to run where it finds one.
globalThis.process = undefined;

// --- the little of protobuf that its requests and answers need

function varint(value) {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return Buffer.from([...bytes, value]);
}

function field(number, value) {
  if (typeof value === "number") return Buffer.concat([varint(number * 8), varint(value)]);
  return Buffer.concat([varint(number * 8 + 2), varint(value.length), value]);
}

function* fields(bytes) {
  let at = 0;
  const next = () => {
    let value = 0;
    for (let unit = 1; ; unit *= 128) {
      const byte = bytes[at++];
      value += (byte & 127) * unit;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = next();
    let value;
    if ((tag & 7) === 0) value = next();
    else if ((tag & 7) === 1) value = bytes.subarray(at, (at += 8));
    else if ((tag & 7) === 2) {
      const length = next();
      value = bytes.subarray(at, (at += length));
    } else throw new Error(`wire type ${tag & 7}`);
    yield [Math.floor(tag / 8), value];
  }
}

// --- asking

const answers = [];
const port = { postMessage: (bytes) => answers.push(Buffer.from(bytes)) };
vm.runInThisContext(fs.readFileSync(path.join(dist, "engine_bundle.js"), "utf8"));
// Its module is ready a few turns later.
for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setTimeout(resolve, 0));
globalThis.onmessage({ data: port });

let sequence = 0;

/** Sends a request; answers the fields of the answers' bodies, by their number. */
function ask(method, body) {
  const request = Buffer.concat([field(1, sequence++), field(2, method), body ?? Buffer.alloc(0)]);
  port.onmessage({ data: field(1, request) });
  const bodies = [];
  for (const [, message] of answers.splice(0).flatMap((it) => [...fields(it)])) {
    for (const [number, value] of fields(message)) {
      if (number === 5) throw new Error(value.toString());
      if (number > 200) bodies.push(...fields(value));
    }
  }
  const error = bodies.find(([number, value]) => number === 2 && method !== FINALIZE && value.length);
  if (error) throw new Error(error[1].toString());
  return bodies;
}

/** The numbers of the only row. */
function query(text) {
  const cells = [];
  for (const [number, batch] of ask(QUERY, field(103, field(1, Buffer.from(text))))) {
    if (number !== 3) continue;
    for (const [kind, packed] of fields(batch)) {
      // Packed integers: read as the values of a message would be.
      if (kind === 2) for (let at = 0, value = 0, unit = 1; at < packed.length; at++) {
        value += (packed[at] & 127) * unit;
        unit *= 128;
        if (packed[at] < 128) [value, unit] = [cells.push(value) * 0, 1];
      }
    }
  }
  return cells;
}

const file = fs.openSync(trace);
const piece = Buffer.alloc(PIECE);
for (let n; (n = fs.readSync(file, piece)) > 0; ) ask(APPEND, field(101, piece.subarray(0, n)));
ask(FINALIZE);
process.stdout.write(`${JSON.stringify({ answer: query(sql) })}\n`);
process.exit(0);
