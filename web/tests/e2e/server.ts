// A real server of the demo's profile and of a synthetic GPU run on two hosts, for all tests.

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    url: string;
    strobe: string;
    root: string;
  }
}

const root = resolve(import.meta.dirname, "../../..");

export default async function setup(project: TestProject): Promise<() => void> {
  const strobe = process.env["STROBE"] || resolve(root, "target/debug/strobe");
  if (!existsSync(strobe)) throw new Error(`there is no ${strobe}; cargo build makes it`);
  const child = spawn(
    strobe,
    [
      "serve",
      "testdata/captured/keras_fit",
      "testdata/synthetic/two_hosts",
      ...(process.env["ALSO"] ?? "").split(":").filter(Boolean),
      "--no-open",
      "--port",
      "0",
    ],
    { cwd: root, stdio: ["ignore", "pipe", "inherit"] },
  );
  project.provide("url", await address(child));
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
