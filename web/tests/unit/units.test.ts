import { expect, test } from "vitest";
import { counterText } from "../../src/timeline/units";

test.each([
  ["cpu/all", 0.421, "42%"],
  ["cpu/core 3", 1, "100%"],
  ["cpu/process", 1.5, "1.5"],
  ["pressure/own/memory", 0.05, "5.0%"],
  ["memory/process", 1234567890, "1.23 GB"],
  ["memory/major_faults", 450, "450 /s"],
  ["mklcpu bytes_allocated", 4_054_000, "4.05 MB"],
  ["disk/read", 2000, "2 kB/s"],
  ["gpu 0/sm_clock", 1410, "1,410 MHz"],
  ["gpu 0/power", 250.123, "250.1 W"],
  ["something of one's own", 12345.678, "12,350"],
  ["memory/swap", null, "–"],
])("%s", (name, value, text) => {
  expect(counterText(name, value)).toBe(text);
});
