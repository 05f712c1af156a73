// What the user chose on the timeline, kept in the address; and what follows from it.

import { batch, signal } from "@preact/signals";
import type {
  EventDetails,
  EventRef,
  LitEvidence,
  RangeResult,
  SearchResult,
  Timeline,
} from "../data/types";
import { narrowed } from "../data/narrowing";
import { link, remember, route } from "../router";
import { lightsOf } from "./block";
import type { Stage } from "./stage";
import type { EventPlace, TileSource, Window } from "./tiles";
import {
  extent,
  grouped,
  groupsAround,
  rowsOf,
  titlesOf,
  type Rows,
  type TrackSort,
} from "./tracks";
import { notesFrom, notesText, type Note } from "./notes";
import { Viewport } from "./viewport";

type Params = Record<string, string>;

/** An event that is lit; of some the lane is not known. */
type LitPlace = EventPlace & { lane?: number };

/** An answer on its way: null until it is there. */
export interface Pending<T> {
  value: T | null;
  error: Error | null;
}

const STEP_MARGIN = 0.06;
const SEARCH_LIMIT = 1000;
const REMEMBER_MS = 300;
const MOST_DETAILS = 60;
const MOST_MARKS = 2000;
/** Tracks that are opened for what is lit on them. */
const MOST_REVEALED = 24;

const numbers = (text: string | undefined): number[] =>
  (text ?? "").split(",").filter(Boolean).map(Number).filter(Number.isFinite);
const words = (text: string | undefined): string[] => (text ?? "").split(",").filter(Boolean);

export class Model {
  readonly toggled = signal<ReadonlySet<string>>(new Set());
  readonly resized = signal<ReadonlySet<number>>(new Set());
  readonly pinned = signal<number[]>([]);
  readonly filter = signal("");
  readonly sort = signal<TrackSort>("default");
  readonly selected = signal<number | null>(null);
  readonly details = signal<Pending<EventDetails>>({ value: null, error: null });
  readonly range = signal<Window | null>(null);
  readonly inside = signal<Pending<RangeResult>>({ value: null, error: null });
  readonly query = signal("");
  readonly found = signal<SearchResult | null>(null);
  readonly hit = signal(-1);
  readonly lit = signal<number[]>([]);
  /** Which evidence of a finding is lit, and what that is once it is known. */
  readonly evidence = signal<string | null>(null);
  readonly litEvidence = signal<LitEvidence | null>(null);
  /** What a drag does: it moves the view, or it selects a range. */
  readonly selecting = signal(false);
  readonly helping = signal(false);
  /** What the user wrote at some times; stands in the address, so that a link carries it. */
  readonly notes = signal<Note[]>([]);
  /** The note that is being written. */
  readonly writing = signal<number | null>(null);
  readonly titles: ReadonlyMap<number, string>;
  /** What is said to screen readers. */
  readonly said = signal("");
  readonly rows = signal<Rows>({ pinned: [], pinnedHeight: 0, rows: [], height: 0, found: 0 });
  tree: ReturnType<typeof grouped> = [];
  /** There once the canvas is. */
  private readonly staged = signal<Stage | null>(null);
  /** Scrolls the rows; set by what holds them. */
  scrollTo: (top: number) => void = () => {};
  private readonly known = new Map<number, Promise<EventDetails>>();
  private written = "";
  private timer = 0;
  private asked: AbortController | null = null;
  private askedRange: AbortController | null = null;
  private marks = 0;
  private litStarts: number[] = [];

  constructor(
    readonly source: TileSource,
    readonly timeline: Timeline,
    private readonly ask: (evidence: string) => Promise<LitEvidence>,
  ) {
    this.titles = titlesOf(timeline.tracks);
    this.readChoices(route.peek().params);
    this.arrange();
  }

  /** A track by its name, told from others of that name. */
  titleOf(track: number): string {
    return this.titles.get(track) ?? `track ${track}`;
  }

  get stage(): Stage | null {
    return this.staged.value;
  }

  /** The stage is there: what the address says is shown. */
  open(stage: Stage): void {
    this.staged.value = stage;
    stage.onMove = () => this.rememberSoon();
    stage.ruleBy(this.hostChosen());
    stage.arrange(this.rows.peek());
    stage.notes = this.notes.peek().map((it) => it.time);
    this.written = JSON.stringify(route.peek().params);
    void this.show(route.peek().params);
  }

  close(): void {
    clearTimeout(this.timer);
    this.asked?.abort();
    this.askedRange?.abort();
    this.staged.value = null;
  }

  /** The address changed: by Back, a link, or by what was remembered here. */
  follow(params: Params): void {
    const text = JSON.stringify(params);
    if (text === this.written || !this.stage) return;
    this.written = text;
    batch(() => this.readChoices(params));
    this.stage.ruleBy(this.hostChosen());
    this.stage.notes = this.notes.peek().map((it) => it.time);
    this.arrange();
    void this.show(params);
  }

  private readChoices(params: Params): void {
    this.toggled.value = new Set(words(params["fold"]));
    this.resized.value = new Set(numbers(params["tall"]));
    this.pinned.value = numbers(params["pin"]);
    this.filter.value = params["tracks"] ?? "";
    const sort = params["sort"];
    this.sort.value = sort === "events" || sort === "name" ? sort : "default";
    this.notes.value = notesFrom(params["notes"]);
    this.tree = grouped(this.timeline, narrowed.peek());
  }

  /** The track of the host that the top bar chose. */
  private hostChosen(): number | null {
    const { host } = narrowed.peek();
    const { tracks } = this.timeline;
    return tracks.find((it) => it.kind === "host" && it.name === host)?.id ?? null;
  }

  private async show(params: Params): Promise<void> {
    const from = Number.parseFloat(params["from"] ?? "");
    const to = Number.parseFloat(params["to"] ?? "");
    const isPlaced = Number.isFinite(from) && Number.isFinite(to) && to > from;
    const window = isPlaced ? { from, to } : this.home();
    const lit = numbers(params["lit"]);
    const event = Number.parseInt(params["event"] ?? "", 10);
    this.stage?.jump(window.from, window.to);
    this.search(params["q"] ?? "");
    const [begin, end] = (params["range"] ?? "").split("-").map(Number);
    const isRange = Number.isFinite(begin) && Number.isFinite(end) && params["range"] !== undefined;
    this.setRange(isRange ? { from: begin!, to: end! } : null);
    if (Number.isFinite(event)) {
      this.select(event);
      if (isPlaced) this.load(event).then((it) => this.reveal(it.track, it.lane), ignored);
      if (!isPlaced && lit.length === 0) void this.focusOn(event);
    } else {
      this.select(null);
    }
    const { evidence } = params;
    if (evidence) await this.lightEvidence(evidence, !isPlaced);
    else await this.light(lit, !isPlaced);
  }

  /** The steps that were chosen, else the typical one, with a margin; without steps all. */
  home(): Window {
    const { steps, typical_step } = this.timeline;
    const chosen = narrowed.peek().steps;
    const host = this.hostChosen();
    const own = steps.filter((it) => host === null || it.host === host);
    if (chosen) {
      const some = own.filter((it) => it.step >= chosen.first && it.step <= chosen.last);
      const from = Math.min(...some.map((it) => it.start_ps));
      const to = Math.max(...some.map((it) => it.start_ps + it.dur_ps));
      if (from < to) return Viewport.around(from, to, STEP_MARGIN / some.length);
    }
    const typical = steps[typical_step ?? -1];
    const isOwn = host === null || typical?.host === host;
    const step = isOwn ? typical : own.find((it) => it.step === typical?.step);
    return step
      ? Viewport.around(step.start_ps, step.start_ps + step.dur_ps, STEP_MARGIN)
      : this.whole();
  }

  whole(): Window {
    const { from, to } = extent(this.timeline);
    return Viewport.around(from, to, 0.01);
  }

  arrange(): void {
    const { toggled, resized, pinned, filter, sort } = this;
    this.rows.value = rowsOf(this.tree, this.timeline.tracks, {
      toggled: toggled.value,
      resized: resized.value,
      pinned: pinned.value,
      filter: filter.value,
      sort: sort.value,
      titles: this.titles,
    });
    this.stage?.arrange(this.rows.value);
  }

  /** After a choice: rows anew, and the address says so. */
  private chosen(): void {
    this.arrange();
    this.rememberSoon();
  }

  toggle(key: string): void {
    this.toggled.value = flipped(this.toggled.value, key);
    this.chosen();
  }

  resizeTrack(id: number): void {
    this.resized.value = flipped(this.resized.value, id);
    this.chosen();
  }

  pin(id: number): void {
    const { pinned } = this;
    pinned.value = pinned.value.includes(id)
      ? pinned.value.filter((it) => it !== id)
      : [...pinned.value, id];
    this.chosen();
  }

  filterBy(text: string): void {
    this.filter.value = text;
    this.chosen();
  }

  sortBy(by: TrackSort): void {
    this.sort.value = by;
    this.chosen();
  }

  /** A mark at a time, to be written on. */
  addNote(time: number): void {
    const near = 6 / (this.stage?.view.pixelsPerPs ?? 1);
    const there = this.notes.value.findIndex((it) => Math.abs(it.time - time) < near);
    if (there < 0) this.notes.value = [...this.notes.value, { time: Math.round(time), text: "" }];
    this.writing.value = there < 0 ? this.notes.value.length - 1 : there;
    this.notesChanged();
  }

  writeNote(at: number, text: string): void {
    this.notes.value = this.notes.value.map((it, n) => (n === at ? { ...it, text } : it));
    this.notesChanged();
  }

  removeNote(at: number): void {
    this.notes.value = this.notes.value.filter((_, n) => n !== at);
    this.writing.value = null;
    this.notesChanged();
  }

  private notesChanged(): void {
    if (this.stage) {
      this.stage.notes = this.notes.value.map((it) => it.time);
      this.stage.draw();
    }
    this.rememberSoon();
  }

  private rememberSoon(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.rememberNow(), REMEMBER_MS);
  }

  private params(): Record<string, string | number | null> {
    const { from, to } = this.stage?.window ?? this.home();
    const home = this.home();
    // An event without a window is one to zoom to.
    const isHome =
      this.selected.value === null &&
      Math.abs(from - home.from) + Math.abs(to - home.to) < (to - from) / 1000;
    const range = this.range.value;
    return {
      from: isHome ? null : Math.round(from),
      to: isHome ? null : Math.round(to),
      event: this.selected.value,
      lit: this.lit.value.join(","),
      evidence: this.evidence.value,
      q: this.query.value,
      range: range ? `${Math.round(range.from)}-${Math.round(range.to)}` : null,
      fold: [...this.toggled.value].join(","),
      tall: [...this.resized.value].join(","),
      pin: this.pinned.value.join(","),
      tracks: this.filter.value,
      sort: this.sort.value === "default" ? null : this.sort.value,
      notes: notesText(this.notes.value),
    };
  }

  private rememberNow(): void {
    if (!this.stage || route.peek().view !== "timeline") return;
    const { params } = route.peek();
    // Another address has come that was not followed yet: to write here would undo it.
    if (JSON.stringify(params) !== this.written) return;
    const next = this.params();
    const same = Object.entries(next).every(
      ([key, value]) => (params[key] ?? "") === String(value ?? ""),
    );
    if (same) return;
    const merged = { ...params };
    for (const [key, value] of Object.entries(next)) {
      if (value === null || value === "") delete merged[key];
      else merged[key] = String(value);
    }
    this.written = JSON.stringify(merged);
    remember(next);
  }

  /** An address with another event selected, and both in view; Back undoes it. */
  eventLink({ event, start_ps, dur_ps }: EventRef): string {
    const now = this.details.value.value;
    const begin = Math.min(start_ps, now?.start_ps ?? start_ps);
    const end = Math.max(start_ps + dur_ps, now ? now.start_ps + now.dur_ps : 0);
    const { from, to } = Viewport.around(begin, end, 0.3);
    const window = { from: Math.round(from), to: Math.round(to) };
    return link("timeline", { ...this.params(), ...window, event });
  }

  load(event: number): Promise<EventDetails> {
    let answer = this.known.get(event);
    if (!answer) {
      answer = this.source.event(event);
      answer.catch(() => this.known.delete(event));
      this.known.set(event, answer);
      if (this.known.size > MOST_DETAILS) this.known.delete(this.known.keys().next().value!);
    }
    return answer;
  }

  /** A choice of the user: what is on the screen stays where it is when a panel opens or shuts. */
  choose(event: number | null): void {
    this.stage?.hold();
    this.select(event);
  }

  select(event: number | null): void {
    if (event === this.selected.peek()) return;
    this.selected.value = event;
    this.details.value = { value: null, error: null };
    this.stage?.select(null);
    this.rememberSoon();
    if (event === null) return;
    this.load(event).then(
      (value) => {
        if (this.selected.peek() !== event) return;
        this.details.value = { value, error: null };
        this.stage?.select(value);
        this.stage?.keepInSight(value.start_ps, value.start_ps + value.dur_ps);
        this.said.value = `Selected ${value.name}`;
      },
      (error: Error) => {
        if (this.selected.peek() === event) this.details.value = { value: null, error };
      },
    );
  }

  /** Zooms to an event and shows its track. */
  async focusOn(event: number): Promise<void> {
    const it = await this.load(event);
    this.reveal(it.track, it.lane);
    const margin = it.dur_ps > 0 ? 0.6 : 200;
    const window = Viewport.around(it.start_ps, it.start_ps + Math.max(it.dur_ps, 1), margin);
    this.stage?.glide(window.from, window.to);
  }

  /** Brings an event into view without a change of scale, unless it would be lost in it. */
  private bringUp(it: EventPlace & { lane: number }): void {
    const { stage } = this;
    if (!stage) return;
    this.reveal(it.track, it.lane);
    const { from, to } = stage.window;
    const span = to - from;
    if (it.dur_ps > span || it.dur_ps < span / 400) {
      const near = Viewport.around(it.start_ps, it.start_ps + Math.max(it.dur_ps, 1), 8);
      stage.glide(near.from, near.to);
    } else if (it.start_ps < from || it.start_ps + it.dur_ps > to) {
      const middle = it.start_ps + it.dur_ps / 2;
      stage.glide(middle - span / 2, middle + span / 2);
    }
  }

  /** Opens the groups around a track and scrolls to it. */
  reveal(track: number, lane: number): void {
    const shut = groupsAround(this.tree, track).filter(
      (it) => it.open === this.toggled.value.has(it.key),
    );
    if (shut.length > 0) {
      const toggled = new Set(this.toggled.value);
      for (const it of shut) {
        if (it.open) toggled.delete(it.key);
        else toggled.add(it.key);
      }
      this.toggled.value = toggled;
      this.chosen();
    }
    const top = this.stage?.scrollFor(track, lane);
    // The rows may have become taller just now: their elements must be there first.
    if (top !== null && top !== undefined) requestAnimationFrame(() => this.scrollTo(top));
  }

  chooseRange(range: Window | null): void {
    this.stage?.hold();
    this.setRange(range);
  }

  setRange(range: Window | null): void {
    this.range.value = range;
    this.askedRange?.abort();
    this.inside.value = { value: null, error: null };
    if (this.stage) {
      this.stage.range = range;
      this.stage.draw();
    }
    this.rememberSoon();
    if (!range) return;
    const asked = new AbortController();
    this.askedRange = asked;
    this.source.range(range, null, asked.signal).then(
      (value) => {
        if (!asked.signal.aborted) this.inside.value = { value, error: null };
      },
      (error: Error) => {
        if (!asked.signal.aborted) this.inside.value = { value: null, error };
      },
    );
  }

  search(text: string): void {
    if (text === this.query.peek()) return;
    this.query.value = text;
    this.asked?.abort();
    this.hit.value = -1;
    this.rememberSoon();
    if (text.trim() === "") {
      this.found.value = null;
      this.showMarks();
      return;
    }
    const asked = new AbortController();
    this.asked = asked;
    this.source.search(text, SEARCH_LIMIT, asked.signal).then(
      (found) => {
        if (asked.signal.aborted) return;
        this.found.value = found;
        this.said.value = `${found.total} events found`;
        this.showMarks();
      },
      () => {},
    );
  }

  private showMarks(): void {
    const { stage } = this;
    if (!stage) return;
    const { value: found } = this.found;
    const hits = found?.hits.map((it) => it.start_ps) ?? [];
    stage.marks = found ? hits : this.litStarts;
    stage.mark = hits[this.hit.value] ?? null;
    stage.draw();
  }

  /** The next hit or the one before; the first one is that after the middle of the view. */
  walk(by: 1 | -1): void {
    const hits = this.found.value?.hits;
    if (!hits || hits.length === 0 || !this.stage) return;
    let next = this.hit.value + by;
    if (this.hit.value < 0) {
      const { from } = this.stage.window;
      const after = hits.findIndex((it) => it.start_ps >= from);
      next = by > 0 ? Math.max(after, 0) : (after < 0 ? hits.length : after) - 1;
    }
    this.goToHit((next + hits.length) % hits.length);
  }

  goToHit(at: number): void {
    const hit = this.found.value?.hits[at];
    if (!hit) return;
    this.hit.value = at;
    this.showMarks();
    this.select(hit.event);
    this.bringUp(hit);
  }

  /** To the next step, or the one before; as wide as the view is set for it. */
  goToStep(by: 1 | -1): void {
    const { stage } = this;
    if (!stage) return;
    const { from, to } = stage.window;
    const { steps } = stage.ruler;
    const middle = (from + to) / 2;
    const now = steps.findIndex((it) => middle < it.start_ps + it.dur_ps);
    const inside = now >= 0 && middle >= steps[now]!.start_ps;
    const at = now < 0 ? steps.length - 1 : inside || by > 0 ? now + (inside ? by : 0) : now - 1;
    this.showStep(Math.min(Math.max(at, 0), steps.length - 1));
  }

  showStep(at: number): void {
    const step = this.stage?.ruler.steps[at];
    if (!step) return;
    const window = Viewport.around(step.start_ps, step.start_ps + step.dur_ps, STEP_MARGIN);
    this.stage?.glide(window.from, window.to);
    this.said.value = `Step ${step.step}`;
  }

  showStepNumber(step: number): void {
    const at = this.stage?.ruler.steps.findIndex((it) => it.step === step) ?? -1;
    if (at >= 0) this.showStep(at);
  }

  /** Lights some events, the rest being dimmed. */
  async light(events: number[], zoom: boolean): Promise<void> {
    const lighting = this.relight(events, null);
    if (events.length === 0) {
      this.shine([], []);
      return;
    }
    const places = await this.source.places(events).catch(() => []);
    if (lighting !== this.marks || !this.stage) return;
    if (zoom && places.length > 0) this.zoomTo(places);
    this.shine(places, []);
  }

  /** Lights what a finding rests on: all of its events, or times within a step. */
  private async lightEvidence(id: string, zoom: boolean): Promise<void> {
    const lighting = this.relight([], id);
    let found: LitEvidence;
    try {
      found = await this.ask(id);
    } catch (error) {
      if (lighting !== this.marks) return;
      this.relight([], null);
      this.shine([], []);
      this.said.value = (error as Error).message;
      return;
    }
    if (lighting !== this.marks || !this.stage) return;
    this.litEvidence.value = found;
    if (zoom) {
      const { from, to } = Viewport.around(found.from, found.to, STEP_MARGIN);
      this.stage.jump(from, to);
    }
    const places = found.events.map(([event, track, lane, start_ps, dur_ps]) => ({
      ...{ event, track, lane, start_ps, dur_ps },
    }));
    this.shine(
      places,
      found.spans.map(([from, to]) => ({ from, to })),
    );
  }

  /** What is lit from now on; answers a number that changes with every such change. */
  private relight(events: number[], evidence: string | null): number {
    this.lit.value = events;
    this.evidence.value = evidence;
    this.litEvidence.value = null;
    this.marks += 1;
    return this.marks;
  }

  private shine(places: LitPlace[], spans: Window[]): void {
    const { stage, marks } = this;
    if (!stage) return;
    this.revealLit(places);
    // Too many marks are one band.
    this.litStarts = places.slice(0, MOST_MARKS).map((it) => it.start_ps);
    this.showMarks();
    stage.light(lightsOf(places, marks), spans);
  }

  /** Opens what hides lit events, and scrolls to where most of them are seen. */
  private revealLit(places: LitPlace[]): void {
    const { stage } = this;
    if (!stage || places.length === 0) return;
    const { from, to } = stage.window;
    const seen = new Map<number, { ps: number; lane: number }>();
    for (const it of places) {
      const ps = Math.min(it.start_ps + it.dur_ps, to) - Math.max(it.start_ps, from);
      if (ps < 0) continue;
      const sum = seen.get(it.track);
      if (sum) sum.ps += ps;
      else seen.set(it.track, { ps, lane: it.lane ?? 0 });
    }
    const most = [...seen].sort((a, b) => b[1].ps - a[1].ps).slice(0, MOST_REVEALED);
    // The fullest one last: that is where the view stays.
    for (const [track, { lane }] of most.reverse()) this.reveal(track, lane);
  }

  unlight(): void {
    void this.light([], false);
    this.rememberSoon();
  }

  /** To the step of the lit events that is most like the typical one. */
  private zoomTo(places: EventPlace[]): void {
    const { stage } = this;
    if (!stage) return;
    const { steps } = stage.ruler;
    const typical = this.timeline.steps[this.timeline.typical_step ?? -1];
    const near = places
      .map((it) => steps[stage.ruler.at(it.start_ps)])
      .filter((it) => it !== undefined)
      .sort((a, b) => {
        const far = (of: typeof a) => Math.abs(of.dur_ps - (typical?.dur_ps ?? 0));
        return Number(b.counts) - Number(a.counts) || far(a) - far(b);
      });
    const step = near[0];
    const window = step
      ? Viewport.around(step.start_ps, step.start_ps + step.dur_ps, STEP_MARGIN)
      : Viewport.around(
          Math.min(...places.map((it) => it.start_ps)),
          Math.max(...places.map((it) => it.start_ps + it.dur_ps)),
          0.1,
        );
    stage.jump(window.from, window.to);
  }

  /** Esc closes what was opened last; false where nothing is open. */
  escape(): boolean {
    if (this.helping.value) this.helping.value = false;
    else if (this.writing.value !== null) this.writing.value = null;
    else if (this.selected.value !== null) this.choose(null);
    else if (this.range.value) this.chooseRange(null);
    else if (this.query.value) this.search("");
    else if (this.lit.value.length > 0 || this.evidence.value !== null) this.unlight();
    else return false;
    return true;
  }
}

/** What went wrong is shown where the event would be. */
const ignored = (): void => {};

function flipped<T>(set: ReadonlySet<T>, it: T): Set<T> {
  const next = new Set(set);
  if (!next.delete(it)) next.add(it);
  return next;
}
