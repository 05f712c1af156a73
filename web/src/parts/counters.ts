// What the samples beside a run hold: which belong on one chart, and in which unit.

import {
  bytes,
  bytesTicks,
  number,
  numberTicks,
  percent,
  percentTicks,
  unitTicks,
} from "../format";
import type { ColumnKind } from "./data-table";

export interface Unit {
  name: string;
  text: (value: number) => string;
  ticks: (values: number[]) => string[];
  kind: ColumnKind;
  /** Shares fill their axis. */
  max?: number;
}

const SHARE: Unit = { name: "share", text: percent, ticks: percentTicks, kind: "share", max: 1 };
const BYTES: Unit = { name: "bytes", text: bytes, ticks: bytesTicks, kind: "bytes" };
const RATE: Unit = {
  name: "bytes/s",
  text: (it) => `${bytes(it)}/s`,
  ticks: (values) => bytesTicks(values).map((it) => it.replace(/B$/, "B/s")),
  kind: "bytes",
};
const PLAIN: Unit = { name: "", text: number, ticks: numberTicks, kind: "number" };
const of = (name: string): Unit => ({
  name,
  text: (it) => `${number(Math.round(it * 100) / 100)} ${name}`,
  // A long unit is in the title.
  ticks: name.length > 3 ? numberTicks : unitTicks(name),
  kind: "number",
});

/** As docs/run-folder.md says. */
export function unitOf(counter: string): Unit {
  const [, what] = /^(?:[^/]+\/)(.*)$/.exec(counter) ?? [];
  if (counter.startsWith("pressure/")) return SHARE;
  if (counter === "cpu/process") return of("cores");
  if (counter === "cpu/runnable") return of("threads");
  if (/clock$/.test(counter)) return of("MHz");
  if (counter.startsWith("cpu/")) return SHARE;
  if (/^(disk|network)\//.test(counter) || /^process\/(read|write)$/.test(counter)) return RATE;
  if (/faults$/.test(counter)) return of("1/s");
  if (counter.startsWith("memory/")) return BYTES;
  if (counter.startsWith("gpu ")) {
    if (what === "memory") return BYTES;
    if (/busy$|^sm_occupancy$|^memory_bandwidth$/.test(what ?? "")) return SHARE;
    if (what === "power") return of("W");
    if (what === "temperature") return of("°C");
    if (/^(pcie|nvlink)_/.test(what ?? "")) return RATE;
  }
  return PLAIN;
}

export interface Group {
  title: string;
  counters: string[];
  /** Many alike: drawn faint, without a legend. */
  alike?: boolean;
}

const GROUPS: [string, string[]][] = [
  ["CPU, of all cores", ["cpu/all", "cpu/stolen", "cpu/throttled"]],
  ["CPU of the process, in cores", ["cpu/process"]],
  ["Threads ready to run", ["cpu/runnable"]],
  ["Clock of the cores", ["cpu/clock"]],
  ["Memory of the process", ["memory/process", "memory/container", "memory/limit", "memory/swap"]],
  ["Memory available", ["memory/available"]],
  ["Page faults", ["memory/major_faults", "memory/minor_faults"]],
  ["Disk", ["disk/read", "disk/write"]],
  ["Storage, by the process", ["process/read", "process/write"]],
  ["Network", ["network/in", "network/out"]],
  ["Something waited for", ["pressure/cpu", "pressure/io", "pressure/memory"]],
  [
    "Something of the process waited for",
    ["pressure/own/cpu", "pressure/own/io", "pressure/own/memory"],
  ],
  ["Processes and threads of the program", ["process/threads", "process/count"]],
];

const OF_GPU: [string, string[]][] = [
  ["busy", ["busy", "memory_busy"]],
  ["by its own counters", ["sm_busy", "sm_occupancy", "tensor_busy", "memory_bandwidth"]],
  ["memory", ["memory"]],
  ["clocks", ["sm_clock", "memory_clock"]],
  ["power", ["power"]],
  ["temperature", ["temperature"]],
  ["PCIe", ["pcie_in", "pcie_out"]],
  ["NVLink", ["nvlink_in", "nvlink_out"]],
  ["reasons for a lower clock", ["throttled"]],
];

/** GPUs first, since they are what a step should wait for; whatever is left comes last, alone. */
export function groupsOf(names: string[]): Group[] {
  const left = new Set(names);
  const groups: Group[] = [];
  const take = (title: string, wanted: string[], alike = false) => {
    const counters = wanted.filter((it) => left.delete(it));
    if (counters.length > 0) groups.push({ title, counters, alike });
  };
  const gpus = new Set(names.flatMap((it) => /^(gpu \d+)\//.exec(it)?.[1] ?? []));
  for (const gpu of [...gpus].sort()) {
    for (const [title, whats] of OF_GPU) {
      take(
        `GPU ${gpu.slice(4)}, ${title}`,
        whats.map((it) => `${gpu}/${it}`),
      );
    }
  }
  for (const [title, wanted] of GROUPS) take(title, wanted);
  take(
    "Each core",
    names.filter((it) => /^cpu\/core \d+$/.test(it)),
    true,
  );
  for (const name of [...left]) take(name, [name]);
  return groups;
}

/** Without what the title of its group says already. */
export const shortName = (counter: string): string =>
  counter
    .replace(/^(gpu \d+|cpu|memory|process|disk|network|pressure(\/own)?)\//, "")
    .replaceAll("_", " ");
