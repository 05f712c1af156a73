// What the page is answered: types made of the code, and what the page adds to them.

import type { Category, TableData } from "./answers";
import type { Tables } from "./tables";

export type * from "./answers";

/** A table whose rows are known by its name. */
export interface TableOf<Name extends keyof Tables> extends TableData {
  name: Name;
}

/** In the order of the design. */
export const CATEGORIES: Category[] = [
  "compute",
  "collective",
  "transfer_in",
  "transfer_out",
  "input",
  "python",
  "compile",
  "runtime",
  "output",
  "idle",
];

/** The same order, for sorting. */
export const asDesigned = (a: { category: Category }, b: { category: Category }): number =>
  CATEGORIES.indexOf(a.category) - CATEGORIES.indexOf(b.category);
