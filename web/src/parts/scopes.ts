// Name scopes as a tree with a place for each: what the icicle draws.

import { hierarchy, partition } from "d3-hierarchy";
import type { ScopeTime } from "../data/tables";

export interface Place {
  scope: string;
  /** The last part of the path. */
  name: string;
  /** With all scopes inside. */
  ps: number;
  /** From 0 to 1, of what is zoomed into. */
  left: number;
  right: number;
  /** 0 for what is zoomed into. */
  level: number;
  parent: string | null;
  inner: boolean;
}

export type Side = "host" | "device";

export const ROOT = "/";

/** Time of a scope with all inside. */
export const scopeTime = (row: ScopeTime, side: Side): number =>
  side === "host" ? row.total_ps : (row.device_ps ?? 0);

export const lastPart = (scope: string): string => scope.slice(scope.lastIndexOf("/") + 1) || ROOT;

/** The scopes around one, outermost first, itself last. */
export function around(scope: string, rows: Map<string, ScopeTime>): string[] {
  const path: string[] = [];
  for (let at: string | null = scope; at !== null && rows.has(at); at = rows.get(at)!.parent) {
    path.unshift(at);
  }
  return path;
}

/** Longest first, each below the scope around it; scopes without time have no place. */
export function places(rows: readonly ScopeTime[], side: Side, zoom: string): Place[] {
  const inside = new Map<string, ScopeTime[]>();
  let top: ScopeTime | undefined;
  for (const row of rows) {
    if (row.scope === zoom) top = row;
    if (row.parent === null || scopeTime(row, side) <= 0) continue;
    const siblings = inside.get(row.parent);
    if (siblings) siblings.push(row);
    else inside.set(row.parent, [row]);
  }
  if (!top || scopeTime(top, side) <= 0) return [];
  const own = (row: ScopeTime) => {
    const held = (inside.get(row.scope) ?? []).reduce((sum, it) => sum + scopeTime(it, side), 0);
    return Math.max(0, scopeTime(row, side) - held);
  };
  const tree = hierarchy(top, (row) => inside.get(row.scope) ?? [])
    .sum(own)
    .sort((a, b) => (b.value ?? 0) - (a.value ?? 0));
  return partition<ScopeTime>()(tree)
    .descendants()
    .map((it) => ({
      scope: it.data.scope,
      name: lastPart(it.data.scope),
      ps: scopeTime(it.data, side),
      left: it.x0,
      right: it.x1,
      level: it.depth,
      parent: it.parent?.data.scope ?? null,
      inner: it.children !== undefined,
    }));
}
