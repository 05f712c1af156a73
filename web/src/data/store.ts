// What is asked once and remembered: runs, reports, tables. Views read it through hooks.

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { Client } from "./client";
import type { Tables } from "./tables";
import type {
  Cell,
  Report,
  RunEntry,
  RunStatus,
  TableHead,
  TableOf,
  TableSchema,
  Timeline,
} from "./types";

/** Set once, by the entry point. */
export let client: Client;
export function setClient(it: Client): void {
  client = it;
}

export const runs = signal<RunEntry[] | null>(null);
export const status = signal<RunStatus | null>(null);
/** Whose status that is: a view must not ask for a run that is not open yet. */
export const statusOf = signal<number | null>(null);
/** Why there is nothing to show, if so. */
export const failure = signal<Error | null>(null);

const answers = new Map<string, Promise<unknown>>();

/** Asks once for each path; an answer that failed is asked for again. */
export function remembered<T>(path: string): Promise<T> {
  let answer = answers.get(path);
  if (!answer) {
    answer = client.json<T>(path);
    answer.catch(() => answers.delete(path));
    answers.set(path, answer);
  }
  return answer as Promise<T>;
}

export interface Answer<T> {
  value: T | null;
  error: Error | null;
}

/** `path: null` asks nothing. While a new answer is on its way, `value` is null. */
export function useAnswer<T>(path: string | null): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T> & { path: string | null }>({
    value: null,
    error: null,
    path: null,
  });
  useEffect(() => {
    if (path === null) return;
    let wanted = true;
    remembered<T>(path).then(
      (value) => wanted && setAnswer({ value, error: null, path }),
      (error: Error) => wanted && setAnswer({ value: null, error, path }),
    );
    return () => {
      wanted = false;
    };
  }, [path]);
  return answer.path === path ? answer : { value: null, error: null };
}

export const useReport = (run: number): Answer<Report> => useAnswer(`runs/${run}/report`);
export const useTimeline = (run: number): Answer<Timeline> => useAnswer(`runs/${run}/timeline`);
export const useSchema = (run: number): Answer<TableSchema[]> => useAnswer(`runs/${run}/tables`);
export const useTable = <Name extends keyof Tables>(
  run: number,
  name: Name,
): Answer<TableOf<Name>> => useAnswer(`runs/${run}/tables/${name}`);

/** All rows, however many: the first ten thousand are there while the rest is on its way. */
export function useWholeTable<Name extends keyof Tables>(
  run: number,
  name: Name,
): Answer<TableOf<Name>> {
  const first = useTable(run, name);
  const missing = first.value !== null && first.value.total > first.value.rows.length;
  const whole = useAnswer<TableOf<Name>>(
    missing ? `runs/${run}/tables/${name}?limit=${first.value!.total}` : null,
  );
  return whole.value ? whole : first;
}

const documented = new WeakMap<TableHead, Record<string, string>>();

/** What each column means, by its name; the same object for the same table. */
export function docs(table: TableHead): Record<string, string> {
  let found = documented.get(table);
  if (!found) {
    found = Object.fromEntries(table.columns.map((it) => [it.name, it.doc]));
    documented.set(table, found);
  }
  return found;
}

/** Rows as objects by column name, of the type that the table's name says. */
export function records<Name extends keyof Tables>(table: TableOf<Name>): Tables[Name][] {
  const names = table.columns.map((it) => it.name);
  return table.rows.map((row) => {
    const record: Record<string, Cell> = {};
    names.forEach((name, at) => (record[name] = row[at] ?? null));
    return record as unknown as Tables[Name];
  });
}

/** Asks for the runs, opens the chosen one and follows its progress until it is ready. */
export async function follow(run: number, cancelled: () => boolean): Promise<void> {
  failure.value = null;
  status.value = null;
  try {
    runs.value ??= await client.json<RunEntry[]>("runs");
    while (!cancelled()) {
      const now = await client.json<RunStatus>(`runs/${run}/status`);
      if (cancelled()) return;
      status.value = now;
      statusOf.value = run;
      if (now.state === "ready") return;
      if (now.state === "failed") throw new Error(now.error ?? "the run could not be opened");
      await new Promise((wake) => setTimeout(wake, now.seconds < 1 ? 50 : 200));
    }
  } catch (error) {
    if (!cancelled()) failure.value = error as Error;
  }
}
