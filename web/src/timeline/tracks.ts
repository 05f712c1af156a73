// Which rows there are, in which order: driving threads on top, devices under them, the rest folded.

import type { Timeline, Track } from "../data/types";

export interface Group {
  /** Stable: stands in the address. */
  key: string;
  title: string;
  /** What is below, for people. */
  about: string;
  open: boolean;
  children: (Group | Track)[];
}

/** The number at the end of a thread's name: an address or an id that says nothing to a person. */
const NUMBERED = /^(.+?)[/ ]-?\d{4,}$/;

/**
 * What tracks are called, each told from its siblings: threads of one pool are numbered in the
 * order of the trace.
 */
export function titlesOf(tracks: readonly Track[]): Map<number, string> {
  const plain = (it: Track) => NUMBERED.exec(it.name)?.[1] ?? (it.name || `track ${it.id}`);
  const siblings = new Map<string, Track[]>();
  for (const it of tracks) {
    const key = `${it.parent} ${it.kind} ${plain(it)}`;
    const own = siblings.get(key);
    if (own) own.push(it);
    else siblings.set(key, [it]);
  }
  const titles = new Map<number, string>();
  for (const own of siblings.values()) {
    own.forEach((it, at) => {
      titles.set(it.id, own.length > 1 ? `${plain(it)} #${at + 1}` : plain(it));
    });
  }
  return titles;
}

export type TrackSort = "default" | "events" | "name";

export interface TrackChoices {
  /** Groups whose state differs from the default. */
  toggled: ReadonlySet<string>;
  /** Tracks whose height differs from the default. */
  resized: ReadonlySet<number>;
  pinned: readonly number[];
  filter: string;
  sort: TrackSort;
  /** What tracks are called, if not by their names. */
  titles?: ReadonlyMap<number, string>;
}

export interface Row {
  key: string;
  top: number;
  height: number;
  depth: number;
  group: Group | null;
  track: Track | null;
  /** From one lane to the next; a squeezed track's are too low for text. */
  pitch: number;
  bar: number;
  squeezed: boolean;
}

export interface Rows {
  pinned: Row[];
  pinnedHeight: number;
  rows: Row[];
  height: number;
  /** How many tracks the filter leaves. */
  found: number;
}

export const LANE = 17;
const BAR = 16;
const PAD = 4;
const GROUP_HEIGHT = 24;
const COUNTER_HEIGHT = 40;
const SQUEEZED = 30;
/** A track of more lanes is squeezed until it is asked for, unless it drives the steps. */
const MOST_LANES = 8;
const FEW_THREADS = 12;
/** Where hosts are so many, all but the first are folded. */
const OPEN_HOSTS = 4;

const isGroup = (it: Group | Track): it is Group => "children" in it;
export const hasContent = (it: Track): boolean => it.n_events > 0 || it.counter !== undefined;

/** From the first event to the last: a capture may have gone on long after. */
export function extent(timeline: Timeline): { from: number; to: number } {
  const busy = timeline.tracks.filter((it) => it.n_events > 0);
  const from = Math.min(...busy.map((it) => it.first_ps ?? Infinity));
  const to = Math.max(...busy.map((it) => it.last_ps ?? -Infinity));
  return from < to ? { from, to } : { from: timeline.start_ps, to: timeline.end_ps };
}

const ALL = { host: null, device: null };

const plural = (n: number, what: string): string => `${n} ${what}${n === 1 ? "" : "s"}`;

/** The tree of groups and tracks, as it is without any choice but that of a host and a device. */
export function grouped(
  timeline: Timeline,
  { host: ofHostOnly, device }: { host: string | null; device: string | null } = ALL,
): (Group | Track)[] {
  const children = new Map<number | null, Track[]>();
  for (const it of timeline.tracks) {
    const siblings = children.get(it.parent) ?? [];
    siblings.push(it);
    children.set(it.parent, siblings);
  }
  const below = (of: Track): Track[] =>
    (children.get(of.id) ?? []).filter(isWanted).flatMap((it) => [it, ...below(it)]);
  const roots = children.get(null) ?? [];
  const isWanted = (it: Track) =>
    it.kind === "host"
      ? ofHostOnly === null || it.name === ofHostOnly
      : it.kind !== "device" || device === null || it.name === device;
  const hosts = roots.filter((it) => it.kind === "host" && isWanted(it));
  const typical = timeline.steps[timeline.typical_step ?? -1]?.host;
  const out: (Group | Track)[] = [];
  hosts.forEach((host, at) => {
    const inside = ofHost(host, below(host), children);
    if (hosts.length === 1) {
      out.push(...inside);
    } else if (inside.length > 0) {
      out.push({
        key: `host-${host.id}`,
        title: host.name,
        about: plural(below(host).filter(hasContent).length, "track"),
        open: hosts.length <= OPEN_HOSTS || host.id === typical || (typical === undefined && !at),
        children: inside,
      });
    }
  });
  const others = roots.filter((it) => it.kind !== "host");
  const counters = others.filter((it) => it.counter);
  const rest = others.filter((it) => !it.counter).flatMap((it) => [it, ...below(it)]);
  if (counters.length > 0) out.push(counterGroup("counters", counters, out.length === 0));
  out.push(...rest.filter(hasContent));
  return out;
}

function counterGroup(key: string, counters: Track[], open: boolean): Group {
  const about = plural(counters.length, "series").replace("seriess", "series");
  return { key, title: "Counters", about, open, children: counters };
}

function ofHost(
  host: Track,
  all: Track[],
  children: Map<number | null, Track[]>,
): (Group | Track)[] {
  const out: (Group | Track)[] = all.filter((it) => it.driving);
  const devices = all.filter((it) => it.kind === "device");
  const taken = new Set<Track>(out as Track[]);
  for (const device of devices) {
    const streams = (children.get(device.id) ?? []).filter(hasContent);
    const main = streams.filter((it) => it.kind === "stream" && !it.counter);
    const side = streams.filter((it) => !main.includes(it));
    for (const it of [device, ...streams]) taken.add(it);
    if (streams.length === 0 && !hasContent(device)) continue;
    const inside: (Group | Track)[] = [...(hasContent(device) ? [device] : []), ...main];
    if (side.length > 0 && main.length > 0) {
      inside.push({
        key: `side-${device.id}`,
        title: "Summaries",
        about: plural(side.length, "track"),
        open: false,
        children: side,
      });
    } else {
      inside.push(...side);
    }
    out.push({
      key: `device-${device.id}`,
      title: device.name,
      about: plural(main.length || streams.length, "stream"),
      open: true,
      children: inside,
    });
  }
  const counters = all.filter((it) => it.counter && !taken.has(it));
  for (const it of counters) taken.add(it);
  const processes = all.filter((it) => it.kind === "process");
  const groups: Group[] = [];
  for (const process of processes) {
    const threads = [process, ...(children.get(process.id) ?? [])].filter(
      (it) => hasContent(it) && !taken.has(it),
    );
    for (const it of threads) taken.add(it);
    if (threads.length === 0) continue;
    groups.push({
      key: `process-${process.id}`,
      title: process.name,
      about: plural(threads.length, "thread"),
      open: false,
      children: threads,
    });
  }
  const left = [host, ...all].filter((it) => hasContent(it) && !taken.has(it));
  if (left.length > 0) {
    const about = plural(left.length, "track");
    groups.push({ key: `more-${host.id}`, title: "More", about, open: false, children: left });
  }
  // Without devices the work is on threads; a few of them are no noise.
  const few = groups.reduce((n, it) => n + it.children.length, 0) <= FEW_THREADS;
  if (out.length === 0 || (devices.length === 0 && few)) for (const it of groups) it.open = true;
  out.push(...groups);
  if (counters.length > 0) {
    out.push(counterGroup(`counters-${host.id}`, counters, out.length === 0));
  }
  return out;
}

/** Rows from top to bottom, as the user chose them. */
export function rowsOf(tree: (Group | Track)[], tracks: Track[], choices: TrackChoices): Rows {
  const wanted = choices.filter.trim().toLowerCase();
  const byId = new Map(tracks.map((it) => [it.id, it]));
  const pinned: Row[] = [];
  let pinnedHeight = 0;
  for (const id of choices.pinned) {
    const track = byId.get(id);
    if (!track || !hasContent(track)) continue;
    const row = trackRow(track, 0, pinnedHeight, choices);
    pinned.push({ ...row, key: `pinned-${id}` });
    pinnedHeight += row.height;
  }
  const rows: Row[] = [];
  let height = 0;
  let found = 0;
  const matches = (it: Group | Track, around: boolean): boolean => {
    const title = isGroup(it) ? it.title : `${it.name} ${choices.titles?.get(it.id) ?? ""}`;
    if (around || title.toLowerCase().includes(wanted)) return true;
    return isGroup(it) && it.children.some((child) => matches(child, false));
  };
  const walk = (items: (Group | Track)[], depth: number, around: boolean): void => {
    for (const it of sorted(items, choices.sort)) {
      if (wanted && !matches(it, around)) continue;
      if (!isGroup(it)) {
        found += 1;
        const row = trackRow(it, depth, height, choices);
        rows.push(row);
        height += row.height;
        continue;
      }
      const open = wanted ? true : it.open !== choices.toggled.has(it.key);
      rows.push({
        key: it.key,
        top: height,
        height: GROUP_HEIGHT,
        depth,
        group: { ...it, open },
        track: null,
        pitch: 0,
        bar: 0,
        squeezed: false,
      });
      height += GROUP_HEIGHT;
      const inside = around || (wanted !== "" && it.title.toLowerCase().includes(wanted));
      if (open) walk(it.children, depth + 1, inside);
    }
  };
  walk(tree, 0, false);
  return { pinned, pinnedHeight, rows, height, found };
}

function trackRow(track: Track, depth: number, top: number, choices: TrackChoices): Row {
  const row = { key: `track-${track.id}`, top, depth, group: null, track };
  if (track.counter && track.n_events === 0) {
    return { ...row, height: COUNTER_HEIGHT, pitch: 0, bar: 0, squeezed: false };
  }
  const lanes = Math.max(track.lanes, 1);
  const narrow = lanes > MOST_LANES && !track.driving;
  const squeezed = lanes > 1 && narrow !== choices.resized.has(track.id);
  if (!squeezed) return { ...row, height: lanes * LANE + PAD + 3, pitch: LANE, bar: BAR, squeezed };
  const pitch = Math.min((SQUEEZED - PAD) / lanes, 6);
  return { ...row, height: Math.max(lanes * pitch + PAD, 24), pitch, bar: pitch, squeezed };
}

function sorted(items: (Group | Track)[], by: TrackSort): (Group | Track)[] {
  if (by === "default") return items;
  const events = (it: Group | Track): number =>
    isGroup(it) ? it.children.reduce((sum, child) => sum + events(child), 0) : it.n_events;
  const title = (it: Group | Track) => (isGroup(it) ? it.title : it.name);
  const compare =
    by === "events"
      ? (a: Group | Track, b: Group | Track) => events(b) - events(a)
      : (a: Group | Track, b: Group | Track) =>
          title(a).localeCompare(title(b), undefined, { numeric: true });
  return items.slice().sort(compare);
}

/** Opens what hides a track; answers the keys that must be toggled for it. */
export function groupsAround(tree: (Group | Track)[], id: number): Group[] {
  for (const it of tree) {
    if (!isGroup(it)) {
      if (it.id === id) return [];
      continue;
    }
    if (it.children.some((child) => !isGroup(child) && child.id === id)) return [it];
    const inside = groupsAround(it.children, id);
    if (inside.length > 0) return [it, ...inside];
  }
  return [];
}

/** The rows that lie between two heights, by halving. */
export function firstRowAt(rows: Row[], height: number): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (rows[middle]!.top + rows[middle]!.height <= height) low = middle + 1;
    else high = middle;
  }
  return low;
}
