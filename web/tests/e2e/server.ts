// A real server for all tests: the demo's profile, a synthetic GPU run on two hosts, then every
// other run of testdata. STROBE_PAGE is a page that is served already, as by `npm run dev`.

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    url: string;
    strobe: string;
    root: string;
    /** In the order of their numbers. */
    runs: string[];
  }
}

const FIRST = ["testdata/captured/keras_fit", "testdata/synthetic/two_hosts"];

const root = resolve(import.meta.dirname, "../../..");

/** Every run of testdata, those first that most tests are about. */
function allRuns(): string[] {
  const below = ["testdata/captured", "testdata/synthetic", "testdata/chrome"].flatMap((folder) =>
    readdirSync(join(root, folder), { withFileTypes: true })
      .filter((it) => it.isDirectory() && it.name !== "scripts")
      .map((it) => `${folder}/${it.name}`),
  );
  return [...FIRST, ...below.filter((it) => !FIRST.includes(it)).sort()];
}

export default async function setup(project: TestProject): Promise<() => void> {
  const strobe = process.env["STROBE"] || resolve(root, "target/debug/strobe");
  if (!existsSync(strobe)) throw new Error(`there is no ${strobe}; cargo build makes it`);
  const runs = allRuns();
  const child = spawn(strobe, ["serve", ...runs, "--no-open", "--port", "0"], {
    cwd: root,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const served = await address(child);
  project.provide("url", process.env["STROBE_PAGE"] ?? served);
  project.provide("runs", runs);
  project.provide("strobe", strobe);
  project.provide("root", root);
  return () => child.kill();
}

function address(child: ChildProcess): Promise<string> {
  return new Promise((found, failed) => {
    let said = "";
    child.stdout!.on("data", (bytes: Buffer) => {
      said += bytes.toString();
      const url = /http:\/\/\S+/.exec(said);
      if (url) found(url[0]);
    });
    child.on("exit", (code) => failed(new Error(`strobe serve ended with ${code}: ${said}`)));
  });
}
