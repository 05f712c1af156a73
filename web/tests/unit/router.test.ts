// The address as the browser changes it: at once, while we are told of it later.
import { beforeEach, expect, test, vi } from "vitest";

const told: (() => void)[] = [];
const address = { hash: "#timeline?evidence=0.0" };
vi.stubGlobal("location", address);
vi.stubGlobal("addEventListener", (_: string, it: () => void) => told.push(it));
vi.stubGlobal("history", { replaceState: (_: null, __: "", it: string) => (address.hash = it) });
const { remember, route } = await import("../../src/router");

const tell = () => told.forEach((it) => it());

beforeEach(() => {
  address.hash = "#timeline?evidence=0.0";
  tell();
});

test("what is remembered is in the address", () => {
  remember({ from: 7 });
  expect(address.hash).toBe("#timeline?evidence=0.0&from=7");
  remember({ from: null, to: 9 });
  expect(route.value.params).toEqual({ evidence: "0.0", to: "9" });
});

test("what is remembered does not undo a link that was just followed", () => {
  address.hash = "#timeline?evidence=1.0";
  remember({ evidence: "" });
  expect(address.hash).toBe("#timeline?evidence=1.0");
  tell();
  expect(route.value.params).toEqual({ evidence: "1.0" });
  remember({ from: 7 });
  expect(address.hash).toBe("#timeline?evidence=1.0&from=7");
});
