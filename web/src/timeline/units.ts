// What a counter's value means, as far as its name tells; docs/run-folder.md lists the samples.

import { bytes, percent, thousands, UNKNOWN } from "../format";

const digits = (value: number): string => thousands(Number(value.toPrecision(4)));

const UNITS: [RegExp, (value: number) => string][] = [
  [/^cpu\/(all|core |stolen|throttled)|^pressure\/|\/(memory_)?busy$/, percent],
  [/^(disk|network)\/|^process\/(read|write)$|\/pcie_/, (it) => `${bytes(Math.round(it))}/s`],
  [
    /^memory\/(process|available|container|limit|swap)$|^gpu \d+\/memory$|bytes/,
    (it) => bytes(Math.round(it)),
  ],
  [/_faults$/, (it) => `${digits(it)} /s`],
  [/clock$/, (it) => `${digits(it)} MHz`],
  [/\/power$/, (it) => `${digits(it)} W`],
  [/\/temperature$/, (it) => `${digits(it)} °C`],
];

export function counterText(name: string, value: number | null): string {
  if (value === null) return UNKNOWN;
  const unit = UNITS.find(([names]) => names.test(name));
  return unit ? unit[1](value) : digits(value);
}
