import { expect, test } from "vitest";
import { counterText } from "../../src/timeline/units";

test.each([
  ["cpu/all", 0.421, "42\u2009%"],
  ["cpu/core 3", 1, "100\u2009%"],
  ["cpu/process", 1.5, "1.5"],
  ["pressure/own/memory", 0.05, "5.0\u2009%"],
  ["memory/process", 1234567890, "1.235 GB"],
  ["memory/major_faults", 450, "450 /s"],
  ["mklcpu bytes_allocated", 4_054_000, "4.054 MB"],
  ["disk/read", 2000, "2.000 kB/s"],
  ["gpu 0/sm_clock", 1410, "1\u2009410 MHz"],
  ["gpu 0/power", 250.123, "250.1 W"],
  ["something of one's own", 12345.678, "12\u2009350"],
  ["memory/swap", null, "–"],
])("%s", (name, value, text) => {
  expect(counterText(name, value)).toBe(text);
});
