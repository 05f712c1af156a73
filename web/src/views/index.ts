// Every view: one file, one line here. The rail, the router and the tests follow this list.

import type { ComponentType } from "preact";

export interface ViewProps {
  run: number;
}

export interface View {
  id: string;
  title: string;
  /** Part of an exported file as well. */
  exported: boolean;
  load: () => Promise<{ default: ComponentType<ViewProps> }>;
}

export const VIEWS: View[] = [
  { id: "overview", title: "Overview", exported: true, load: () => import("./overview") },
  { id: "input", title: "Input", exported: true, load: () => import("./input") },
  { id: "memory", title: "Memory", exported: true, load: () => import("./memory") },
  { id: "hardware", title: "Hardware", exported: true, load: () => import("./hardware") },
  { id: "compare", title: "Compare", exported: false, load: () => import("./compare") },
  { id: "scalars", title: "Scalars", exported: true, load: () => import("./scalars") },
];
