// A page in a real browser that fails its test on any error, and on any request off the origin.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, chromium, type Page } from "playwright-core";

const axeSource = readFileSync(
  createRequire(import.meta.url).resolve("axe-core/axe.min.js"),
  "utf8",
);

export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--no-first-run",
      "--disable-quic",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      // Without a graphics card, as in CI: WebGL2 in software.
      "--use-gl=angle",
      "--use-angle=swiftshader",
      "--enable-unsafe-swiftshader",
    ],
  });
}

export interface Look {
  theme: "light" | "dark";
  width: number;
}

export const LOOKS: Look[] = [
  { theme: "light", width: 800 },
  { theme: "dark", width: 800 },
  { theme: "light", width: 1280 },
  { theme: "light", width: 1920 },
  { theme: "dark", width: 1920 },
];

/** What must not happen while a page is open. */
export interface Watched {
  page: Page;
  errors: string[];
  foreign: string[];
}

export async function open(
  browser: Browser,
  url: string,
  look: Look = { theme: "light", width: 1280 },
): Promise<Watched> {
  const context = await browser.newContext({
    viewport: { width: look.width, height: look.width === 1920 ? 1080 : 800 },
    colorScheme: look.theme,
  });
  const page = await context.newPage();
  const watched: Watched = { page, errors: [], foreign: [] };
  page.on("pageerror", (error) => watched.errors.push(String(error)));
  page.on("console", (it) => {
    if (it.type() === "error") watched.errors.push(it.text());
  });
  const { origin, protocol } = new URL(url);
  context.on("request", (it) => {
    const asked = new URL(it.url());
    const own = protocol === "file:" ? asked.href === url.split("#")[0] : asked.origin === origin;
    if (!own && asked.protocol !== "data:" && asked.protocol !== "blob:") {
      watched.foreign.push(it.url());
    }
  });
  await page.goto(url);
  return watched;
}

/** What the server answers to the page, token and all. */
export function asked<T>(page: Page, path: string): Promise<T> {
  return page.evaluate(async (path) => {
    const headers = { authorization: `Bearer ${localStorage.getItem("token")}` };
    return (await fetch(`api/${path}`, { headers })).json();
  }, path);
}

/** The address of a page for another browser, which has to be given the token as well. */
export function handedOver(page: Page, served: string): string {
  const address = new URL(page.url());
  address.search = new URL(served).search;
  return address.href;
}

/** Waits until nothing is asked and nothing is a placeholder any more. */
export async function settled(page: Page): Promise<void> {
  await page.waitForLoadState("networkidle");
  await page.waitForFunction(
    () => !document.querySelector("main .skeleton, main [aria-busy=true]"),
  );
}

/** What assistive technology would stumble over. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axeSource);
  return page.evaluate(async () => {
    const axe = (window as unknown as { axe: { run: (of: unknown, how: unknown) => Promise<Axe> } })
      .axe;
    interface Axe {
      violations: {
        id: string;
        help: string;
        nodes: { target: string[]; failureSummary: string }[];
      }[];
    }
    const found = await axe.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
    });
    return found.violations.map(
      (it) =>
        `${it.id}: ${it.help}: ${it.nodes
          .map((node) => node.target.join(" "))
          .slice(0, 3)
          .join(", ")}`,
    );
  });
}
