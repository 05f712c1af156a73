// Asking by SQL, and opening a second run: what some views need beyond tables and the report.

import { useEffect, useState } from "preact/hooks";
import type { Cell, RunStatus, SqlResult } from "./types";
import { client, type Answer } from "./store";

/** A row of the table `hardware`. */
export interface Sampled {
  host: string;
  step: number | null;
  counter: string;
  mean: number | null;
  min: number | null;
  max: number | null;
  n: number;
}

const asked = new Map<string, Promise<SqlResult>>();

/** Rows as objects. `null` asks nothing; an exported file has no SQL, and answers with an error. */
export function useSql<T extends object>(run: number, query: string | null): Answer<T[]> {
  const [answer, setAnswer] = useState<Answer<T[]> & { key: string }>({
    value: null,
    error: null,
    key: "",
  });
  const key = query === null ? "" : `${run} ${query}`;
  useEffect(() => {
    if (query === null) return;
    let wanted = true;
    let result = asked.get(key);
    if (!result) {
      result = client.post<SqlResult>(`runs/${run}/sql`, { query, limit: 20_000 });
      result.catch(() => asked.delete(key));
      asked.set(key, result);
    }
    result.then(
      (it) => wanted && setAnswer({ value: objects<T>(it), error: null, key }),
      (error: Error) => wanted && setAnswer({ value: null, error, key }),
    );
    return () => {
      wanted = false;
    };
  }, [key]);
  return answer.key === key ? answer : { value: null, error: null };
}

function objects<T extends object>({ columns, rows }: SqlResult): T[] {
  return rows.map((row) => {
    const one: Record<string, Cell> = {};
    columns.forEach((name, at) => (one[name] = row[at] ?? null));
    return one as T;
  });
}

/** A text as SQL writes it. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** Opens a run beside the one that is shown, and says how far that is. */
export function useOpened(run: number | null): Answer<RunStatus> {
  const [answer, setAnswer] = useState<Answer<RunStatus> & { run: number | null }>({
    value: null,
    error: null,
    run: null,
  });
  useEffect(() => {
    if (run === null) return;
    let wanted = true;
    const follow = async () => {
      try {
        while (wanted) {
          const now = await client.json<RunStatus>(`runs/${run}/status`);
          if (!wanted) return;
          if (now.state === "failed") throw new Error(now.error ?? "the run could not be opened");
          setAnswer({ value: now, error: null, run });
          if (now.state === "ready") return;
          await new Promise((wake) => setTimeout(wake, now.seconds < 1 ? 50 : 200));
        }
      } catch (error) {
        if (wanted) setAnswer({ value: null, error: error as Error, run });
      }
    };
    void follow();
    return () => {
      wanted = false;
    };
  }, [run]);
  return answer.run === run ? answer : { value: null, error: null };
}
