// Every view: one file, one line here. The rail, the router and the tests follow this list.

import type { ComponentType } from "preact";
import type { Narrowing } from "../data/narrowing";

export interface ViewProps {
  run: number;
}

export interface View {
  id: string;
  title: string;
  /** What it can be narrowed to in the top bar. */
  narrows?: readonly Narrowing[];
  load: () => Promise<{ default: ComponentType<ViewProps> }>;
}

/** What needs a server is left out of exported files, script and all. */
const live = !__EXPORTED__;

const ALL_WAYS: readonly Narrowing[] = ["host", "device", "steps"];

const ALL: (View | false)[] = [
  { id: "overview", title: "Overview", narrows: ALL_WAYS, load: () => import("./overview") },
  { id: "timeline", title: "Timeline", narrows: ALL_WAYS, load: () => import("./timeline") },
  { id: "ops", title: "Ops", load: () => import("./ops") },
  { id: "flame", title: "Flame", narrows: ["host", "steps"], load: () => import("./flame") },
  { id: "kernels", title: "Kernels", load: () => import("./kernels") },
  { id: "input", title: "Input", load: () => import("./input") },
  { id: "memory", title: "Memory", load: () => import("./memory") },
  { id: "hardware", title: "Hardware", narrows: ["host"], load: () => import("./hardware") },
  { id: "compile", title: "Compile", load: () => import("./compile") },
  { id: "tables", title: "Tables", load: () => import("./tables") },
  live && { id: "compare", title: "Compare", load: () => import("./compare") },
  live && { id: "query", title: "Query", load: () => import("./query") },
  live && { id: "scalars", title: "Scalars", load: () => import("./scalars") },
];

export const VIEWS: View[] = ALL.filter((it): it is View => it !== false);
