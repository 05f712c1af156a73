// Every view: one file, one line here. The rail, the router and the tests follow this list.

import type { ComponentType } from "preact";
import type { Narrowing } from "../data/narrowing";

export interface ViewProps {
  run: number;
}

export interface Needs {
  tables?: readonly string[];
  /** Time of the step that it also speaks of, without any table. */
  category?: string;
  runs?: number;
  without: string;
}

export interface View {
  id: string;
  title: string;
  /** Without a row in any of these tables, or so many runs, it has nothing to show, and the rail
   * says why. */
  needs?: Needs;
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
  {
    id: "ops",
    title: "Ops",
    needs: { tables: ["op_time", "host_call"], without: "No ops are in this profile" },
    load: () => import("./ops"),
  },
  {
    id: "flame",
    title: "Flame",
    narrows: ["host", "steps"],
    needs: {
      tables: ["python_stack", "scope_step"],
      without: "No Python stacks were sampled, and ops have no scopes",
    },
    load: () => import("./flame"),
  },
  {
    id: "kernels",
    title: "Kernels",
    needs: { tables: ["kernel_time", "copy"], without: "No kernels and no copies were recorded" },
    load: () => import("./kernels"),
  },
  {
    id: "input",
    title: "Input",
    needs: {
      tables: ["input_stage", "batch_loader"],
      category: "input",
      without: "No loader was seen",
    },
    load: () => import("./input"),
  },
  {
    id: "memory",
    title: "Memory",
    needs: {
      tables: ["memory", "program_memory", "hardware"],
      without: "No allocator events and no samples were recorded",
    },
    load: () => import("./memory"),
  },
  {
    id: "hardware",
    title: "Hardware",
    narrows: ["host"],
    needs: { tables: ["hardware"], without: "No samples of the machine were taken" },
    load: () => import("./hardware"),
  },
  {
    id: "compile",
    title: "Compile",
    needs: { tables: ["compile"], without: "Nothing was compiled or traced" },
    load: () => import("./compile"),
  },
  { id: "tables", title: "Tables", load: () => import("./tables") },
  live && {
    id: "compare",
    title: "Compare",
    needs: { runs: 2, without: "There is one run here" },
    load: () => import("./compare"),
  },
  live && { id: "query", title: "Query", load: () => import("./query") },
  live && {
    id: "scalars",
    title: "Scalars",
    needs: { tables: ["scalar"], without: "There are no event files with this profile" },
    load: () => import("./scalars"),
  },
];

export const VIEWS: View[] = ALL.filter((it): it is View => it !== false);
