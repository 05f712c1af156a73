// The exported file: opened from disk, complete, small, and without anything private.

import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { launch, open, settled, violations } from "./browser";

/** All but those that need a server. */
const VIEWS = [
  ...["overview", "timeline", "ops", "flame", "kernels", "input", "memory", "hardware", "compile"],
  "tables",
];

let browser: Browser;
let folder: string;
beforeAll(async () => {
  browser = await launch();
  folder = mkdtempSync(join(tmpdir(), "strobe-export-"));
});
afterAll(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});

function exported(profile: string): string {
  const file = join(folder, `${profile.replaceAll("/", "-")}.html`);
  const from = join(folder, "very-private-folder", profile);
  cpSync(join(inject("root"), "testdata", profile), from, { recursive: true });
  execFileSync(inject("strobe"), ["export", from, "--to", "html", "--out", file, "--force"]);
  return file;
}

test.each(["captured/keras_fit", "synthetic/two_hosts"])("%s opens from disk", async (profile) => {
  const file = exported(profile);
  expect(statSync(file).size).toBeLessThan(10_000_000);
  const url = pathToFileURL(file).href;
  for (const view of VIEWS) {
    const { page, errors, foreign } = await open(browser, `${url}#${view}`);
    await page.locator("main").waitFor();
    await settled(page);
    expect(errors).toEqual([]);
    expect(foreign).toEqual([]);
    expect(await page.locator("main [role=alert]").count()).toBe(0);
    expect((await page.locator("main").innerText()).length).toBeGreaterThan(20);
    expect(await violations(page)).toEqual([]);
    if (view === "memory" && profile === "captured/keras_fit") {
      await page.getByLabel(/^Bytes in use of .* over time/).waitFor();
    }
    if (view === "overview") {
      await page.locator(".show-me").first().click();
      await page.getByRole("note", { name: "What is lit" }).waitFor();
      expect(errors).toEqual([]);
    }
    await page.context().close();
  }
});

test("the licences of what is inside can be read", async () => {
  const url = pathToFileURL(exported("captured/keras_fit")).href;
  const { page, errors } = await open(browser, url);
  await page.getByRole("button", { name: "Licences" }).click();
  const dialog = page.getByRole("dialog", { name: "Licences" });
  const text = await dialog.innerText();
  for (const it of ["preact", "uplot", "@codemirror/view", "Permission is hereby granted"]) {
    expect(text).toContain(it);
  }
  expect(await violations(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Close" }).click();
  await dialog.waitFor({ state: "hidden" });
  expect(errors).toEqual([]);
  await page.context().close();
});

test("nothing private is inside", () => {
  const html = readFileSync(exported("captured/keras_fit"), "utf8");
  const packed = /id="data">([^<]*)</.exec(html)![1]!;
  const data = gunzipSync(Buffer.from(packed, "base64")).toString();
  expect(data.length).toBeGreaterThan(100_000);
  for (const text of [html, data]) {
    expect(text).not.toContain("very-private-folder");
    expect(text).not.toContain(folder);
    expect(text).not.toMatch(/\/(home|root|Users)\/\w+\//);
  }
});

test("the flame graph is in the file, without lines of the program", async () => {
  const file = exported("captured/run_folder");
  const { page, errors } = await open(browser, `${pathToFileURL(file).href}#flame`);
  await page.getByRole("button", { name: /^write_log / }).click();
  await page.getByText("An exported file does not contain lines").waitFor();
  expect(await page.locator("main").innerText()).toContain("train.py:40");
  expect(await violations(page)).toEqual([]);
  expect(errors).toEqual([]);
  await page.context().close();
  const packed = /id="data">([^<]*)</.exec(readFileSync(file, "utf8"))![1]!;
  const data = gunzipSync(Buffer.from(packed, "base64")).toString();
  expect(data).toContain("standardize");
  expect(data).not.toContain("standardize(log)");
  expect(data).not.toContain("values[i % 8]");
  expect(data).not.toMatch(/\/home\/\w+\//);
});
