// The router reads the address when it is loaded, so there must be one.
import { beforeEach, expect, test, vi } from "vitest";

const replaced = vi.fn();
vi.stubGlobal("location", { hash: "" });
vi.stubGlobal("addEventListener", () => {});
vi.stubGlobal("history", { replaceState: replaced });
const { narrowed, stepsFrom, stepsText, within } = await import("../../src/data/narrowing");
const { link, remember, route, showEvents } = await import("../../src/router");

const at = (params: Record<string, string>, run = 0) => {
  route.value = { view: "overview", run, params };
};

beforeEach(() => at({}));

test.each([
  ["3-8", { first: 3, last: 8 }],
  [" 3 – 8 ", { first: 3, last: 8 }],
  ["5", { first: 5, last: 5 }],
  ["8-3", null],
  ["x", null],
  ["", null],
])("steps of %j", (text, expected) => {
  expect(stepsFrom(text)).toEqual(expected);
  expect(stepsFrom(stepsText(stepsFrom(text)))).toEqual(expected);
});

test("a row is within what it says nothing about", () => {
  at({ host: "a", steps: "2-3" });
  expect(within(narrowed.value, { host: "a", device: "GPU", step: 2 })).toBe(true);
  expect(within(narrowed.value, { host: "a" })).toBe(true);
  expect(within(narrowed.value, { host: "b", step: 2 })).toBe(false);
  expect(within(narrowed.value, { host: "a", step: 4 })).toBe(false);
});

test("the choice goes along within a run, and not to the evidence", () => {
  at({ host: "a", steps: "2-3", sort: "name" });
  expect(link("timeline")).toBe("#timeline?host=a&steps=2-3");
  expect(link("timeline", { host: null })).toBe("#timeline?steps=2-3");
  expect(link("timeline", {}, 1)).toBe("#timeline?run=1");
  expect(showEvents([7])).toBe("#timeline?lit=7");
});

test("a choice can be forgotten", () => {
  at({ host: "a" });
  remember({ host: null });
  expect(narrowed.value.host).toBe(null);
  expect(replaced).toHaveBeenLastCalledWith(null, "", "#overview");
});
