// Where each call or scope lies in a flame graph: callers on top, as wide as their time.

/** A call, or a scope, with what is inside it. */
export interface FlameNode<T> {
  /** Stands in the address: a row of it, or its path. */
  id: string;
  name: string;
  /** What it is grouped by among those inside the same one. */
  key: string;
  ps: number;
  selfPs: number;
  /** When the first of it began. */
  start: number;
  children: FlameNode<T>[];
  parent: FlameNode<T> | null;
  /** The rows that it stands for. */
  rows: T[];
}

export type Order = "time" | "heavy";

export interface FlameInput<T> {
  id: (row: T) => string;
  /** Of what is around it; null for the outermost. */
  parent: (row: T) => string | null;
  key: (row: T) => string;
  name: (row: T) => string;
  ps: (row: T) => number;
  selfPs: (row: T) => number;
  start: (row: T) => number;
}

export interface Flame<T> {
  root: FlameNode<T>;
  /** The node that each row is part of. */
  of: Map<string, FlameNode<T>>;
}

const node = <T>(
  id: string,
  key: string,
  name: string,
  start: number,
  parent: FlameNode<T> | null,
): FlameNode<T> => ({ id, key, name, start, parent, ps: 0, selfPs: 0, children: [], rows: [] });

/**
 * Rows of the same key inside the same node are one node: in order of time, those that follow each
 * other; longest first, all of them. Rows come with those around them before, in order of time.
 */
export function flame<T>(rows: readonly T[], by: FlameInput<T>, order: Order): Flame<T> {
  const root: FlameNode<T> = node("", "", "All", 0, null);
  const of = new Map<string, FlameNode<T>>();
  const merged = new Map<FlameNode<T>, Map<string, FlameNode<T>>>();
  for (const row of rows) {
    const [id, key, parentId] = [by.id(row), by.key(row), by.parent(row)];
    const around = parentId === null ? root : of.get(parentId);
    // What is around it was left out: so is this.
    if (!around) continue;
    let into: FlameNode<T> | undefined;
    if (order === "time") {
      const last = around.children[around.children.length - 1];
      if (last?.key === key) into = last;
    } else {
      into = merged.get(around)?.get(key);
    }
    if (!into) {
      into = node(id, key, by.name(row), by.start(row), around);
      around.children.push(into);
      if (order === "heavy") {
        const known = merged.get(around);
        if (known) known.set(key, into);
        else merged.set(around, new Map([[key, into]]));
      }
    }
    into.ps += by.ps(row);
    into.selfPs += by.selfPs(row);
    into.start = Math.min(into.start, by.start(row));
    into.rows.push(row);
    of.set(id, into);
    if (around === root) root.ps += by.ps(row);
  }
  const sort = (it: FlameNode<T>) => {
    it.children.sort((a, b) => (order === "heavy" ? b.ps - a.ps : a.start - b.start));
    it.children.forEach(sort);
  };
  sort(root);
  return { root, of };
}

/** A bar of the drawing. */
export interface Bar<T> {
  node: FlameNode<T>;
  /** In pixels. */
  left: number;
  width: number;
  level: number;
  /** So many neighbours are too narrow to draw one by one, and are drawn as one; else 1. */
  many: number;
  /** Their time. */
  ps: number;
}

/** Nobody could point at narrower ones. */
export const NARROWEST = 3;

/** What is zoomed into fills the width; those around it lie above, as wide. */
export function bars<T>(zoom: FlameNode<T>, width: number, deepest = Infinity): Bar<T>[] {
  const drawn: Bar<T>[] = [];
  const above: FlameNode<T>[] = [];
  for (let at: FlameNode<T> | null = zoom; at !== null; at = at.parent) above.unshift(at);
  above.forEach((node, level) => drawn.push({ node, left: 0, width, level, many: 1, ps: node.ps }));
  const inside = (around: FlameNode<T>, left: number, scale: number, level: number) => {
    if (level > deepest) return;
    let x = left;
    let narrow: Bar<T> | null = null;
    const flush = () => {
      if (narrow && narrow.width >= 1) drawn.push(narrow);
      narrow = null;
    };
    for (const child of around.children) {
      const wide = child.ps * scale;
      if (wide >= NARROWEST) {
        flush();
        drawn.push({ node: child, left: x, width: wide, level, many: 1, ps: child.ps });
        inside(child, x, scale, level + 1);
      } else if (narrow) {
        const together: Bar<T> = narrow;
        together.width += wide;
        together.many += 1;
        together.ps += child.ps;
      } else {
        narrow = { node: child, left: x, width: wide, level, many: 1, ps: child.ps };
      }
      x += wide;
    }
    flush();
  };
  if (zoom.ps > 0) inside(zoom, 0, width / zoom.ps, above.length);
  return drawn;
}

/** How many nodes lie below each other at most, the node itself included. */
export function depth<T>(of: FlameNode<T>): number {
  let most = 0;
  for (const child of of.children) most = Math.max(most, depth(child));
  return most + 1;
}

/** Time of what matches, none of it counted twice: what matches inside of a match adds nothing. */
export function matchedPs<T>(of: FlameNode<T>, matches: (it: FlameNode<T>) => boolean): number {
  if (matches(of)) return of.ps;
  return of.children.reduce((sum, it) => sum + matchedPs(it, matches), 0);
}

export interface Part {
  key: string;
  name: string;
  ps: number;
}

/** What has most self time inside a node, by name. */
export function heaviest<T>(of: FlameNode<T>, most: number): Part[] {
  const sums = new Map<string, Part>();
  const add = (it: FlameNode<T>) => {
    if (it.selfPs > 0 && it.parent !== null) {
      const part = sums.get(it.key);
      if (part) part.ps += it.selfPs;
      else sums.set(it.key, { key: it.key, name: it.name, ps: it.selfPs });
    }
    it.children.forEach(add);
  };
  add(of);
  return [...sums.values()].sort((a, b) => b.ps - a.ps).slice(0, most);
}
