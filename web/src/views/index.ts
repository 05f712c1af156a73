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
  { id: "ops", title: "Ops", exported: true, load: () => import("./ops") },
  { id: "kernels", title: "Kernels", exported: false, load: () => import("./kernels") },
  { id: "compile", title: "Compile", exported: false, load: () => import("./compile") },
  { id: "query", title: "Query", exported: false, load: () => import("./query") },
];
