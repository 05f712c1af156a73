// node shots.mjs URL OUT WIDTH THEME RUNS...  (views x runs)
import { chromium } from "playwright-core";
const [url, out, width, theme, ...runs] = process.argv.slice(2);
const views = (process.env.VIEWS ?? "overview,timeline,ops,flame,kernels,input,memory,hardware,compile").split(",");
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox","--use-gl=angle","--use-angle=swiftshader","--enable-unsafe-swiftshader","--disable-background-networking"] });
const context = await browser.newContext({ viewport: { width: +width, height: +width === 1920 ? 1080 : 800 }, colorScheme: theme });
const page = await context.newPage();
page.on("pageerror", (e) => console.log("ERR", String(e)));
page.on("console", (e) => e.type() === "error" && console.log("CONSOLE", e.text()));
await page.goto(url);
await page.waitForTimeout(800);
const base = url.split("#")[0].split("?")[0];
for (const run of runs) for (const view of views) {
  await page.goto(`${base}#${view}?run=${run}`);
  await page.waitForTimeout(900);
  await page.screenshot({ path: `${out}/${run}-${view}-${width}-${theme}.png` });
}
await browser.close();
