// The address is the state: `#timeline?run=0&from=…`. Every view can be linked to; Back works.

import { signal } from "@preact/signals";

export interface Route {
  view: string;
  run: number;
  params: Record<string, string>;
}

function parse(hash: string): Route {
  const [view, query] = hash.replace(/^#\/?/, "").split("?", 2);
  const params = Object.fromEntries(new URLSearchParams(query ?? ""));
  const run = Number.parseInt(params["run"] ?? "0", 10);
  delete params["run"];
  return { view: view || "overview", run: Number.isFinite(run) && run >= 0 ? run : 0, params };
}

export const route = signal<Route>(parse(location.hash));

/** The address that the route was read from. Between a click on a link and our being told, the
 * browser has another one already. */
let followed = location.hash;

addEventListener("hashchange", () => {
  followed = location.hash;
  route.value = parse(followed);
});

type Params = Record<string, string | number | null | undefined>;

/** What goes along from view to view within a run, unless told otherwise. */
const STAYS = ["host", "device", "steps"];

/** Where a view lies; the run stays the same unless told otherwise. */
export function link(view: string, params: Params = {}, run: number = route.value.run): string {
  const now = route.value;
  const kept = run === now.run ? STAYS.map((it) => [it, now.params[it]] as const) : [];
  return address(view, { ...Object.fromEntries(kept), ...params }, run);
}

function address(view: string, params: Params, run: number): string {
  const query = new URLSearchParams();
  if (run !== 0) query.set("run", String(run));
  for (const [key, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "") query.set(key, String(value));
  }
  const text = query.toString();
  return `#${view}${text ? `?${text}` : ""}`;
}

/** A new entry in the history: Back returns here. */
export function go(view: string, params: Params = {}, run?: number): void {
  location.hash = link(view, params, run);
}

/** Remembers small changes of this view (a sort order, a zoom) without filling the history. */
export function remember(changes: Record<string, string | number | null>): void {
  // The user is on the way elsewhere: to write here would undo that.
  if (location.hash !== followed) return;
  const now = route.peek();
  const params = { ...now.params };
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === "") delete params[key];
    else params[key] = String(value);
  }
  history.replaceState(null, "", address(now.view, params, now.run));
  followed = location.hash;
  route.value = { ...now, params };
}

/** The evidence on the timeline, wherever it lies: these events lit, the rest dimmed. */
export function showEvents(events: number[], window?: { from: number; to: number }): string {
  return link("timeline", {
    ...{ host: null, device: null, steps: null },
    lit: events.slice(0, 200).join(","),
    from: window?.from,
    to: window?.to,
  });
}
