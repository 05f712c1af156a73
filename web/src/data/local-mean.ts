// The mean of some steps in an exported file, which has no server to ask for `mean_step`.

import { within } from "./narrowing";
import { records } from "./store";
import { CATEGORIES, type MeanOfSteps, type TableOf } from "./types";

export function localMean(times: TableOf<"step_time">, asked: URLSearchParams): MeanOfSteps {
  const steps = {
    first: Number(asked.get("first") ?? -Infinity),
    last: Number(asked.get("last") ?? Infinity),
  };
  const of = { host: asked.get("host"), device: asked.get("device"), steps };
  const rows = records(times).filter((it) => it.counts && within(of, it));
  if (rows.length === 0) return { n_steps: 0, mean_ms: null, breakdown: [] };
  const length = rows.reduce((sum, it) => sum + it.dur_ps, 0);
  const breakdown = CATEGORIES.map((category) => {
    const sum = rows.reduce((all, it) => all + it[`${category}_ps`], 0);
    return { category, ms_per_step: sum / rows.length / 1e9, share: length > 0 ? sum / length : 0 };
  });
  return { n_steps: rows.length, mean_ms: length / rows.length / 1e9, breakdown };
}
