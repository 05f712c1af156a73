// What a step would take if something changed: always a range, drawn under the step as it is.

import { gain, plain, time } from "../format";
import "./what-if.css";

export interface WhatIf {
  change: string;
  step_ps: number;
  replayed_ps: number;
  new_step_ps: number;
  best_ps: number;
  worst_ps: number;
  limited_by: string | null;
}

const OF_INPUT = /^(prefetch$|parallel |cache |without python in |without Iterator)/;

/** Whether a change is one of the input pipeline's. */
export const isOfInput = (it: WhatIf): boolean =>
  OF_INPUT.test(it.change) || it.change === "without input";

export function WhatIfs({ rows, label }: { rows: WhatIf[]; label: string }) {
  const most = Math.max(...rows.map((it) => Math.max(it.step_ps, it.worst_ps)));
  const at = (ps: number) => `${(ps / most) * 100}%`;
  return (
    <table class="quiet what-if" aria-label={label}>
      <thead>
        <tr>
          <th>change</th>
          <th class="range-cell">
            the step then, of {time(rows[0]?.step_ps)} <span class="visually-hidden">now</span>
          </th>
          <th class="number">best to worst</th>
          <th class="number">faster</th>
          <th>then limited by</th>
        </tr>
      </thead>
      <tbody>
        {rows
          .slice()
          .sort((a, b) => a.new_step_ps - b.new_step_ps)
          .map((it) => (
            <tr key={it.change}>
              <th scope="row" class="change" title={it.change}>
                {inWords(it.change)}
              </th>
              <td class="range-cell">
                <div class="range" aria-hidden="true">
                  <i class="now" style={{ width: at(it.step_ps) }} />
                  <i
                    class="span"
                    style={{
                      left: at(it.best_ps),
                      width: `calc(${at(it.worst_ps - it.best_ps)} + 2px)`,
                    }}
                  />
                  <i class="likely" style={{ left: at(it.new_step_ps) }} />
                </div>
              </td>
              <td class="number">
                {time(it.best_ps) === time(it.worst_ps)
                  ? time(it.best_ps)
                  : `${time(it.best_ps)} – ${time(it.worst_ps)}`}
              </td>
              <td class="number">{faster(it)}</td>
              <td class="faint">{it.limited_by && stageName(it.limited_by)}</td>
            </tr>
          ))}
      </tbody>
    </table>
  );
}

function faster(it: WhatIf): string {
  const of = (ps: number) => (ps > 0 ? it.step_ps / ps : null);
  const [low, high] = [of(it.worst_ps), of(it.best_ps)];
  if (low === null || high === null) return "";
  return high < 1.005 ? "not" : gain(Math.max(low, 1), high);
}

/** The last two stages of a path: `BatchV2 ▸ Map`. */
export function stageName(path: string): string {
  const parts = path.split("::");
  return parts[0] === "Iterator" ? parts.slice(1).slice(-2).join(" ▸ ") : plain(path);
}

/** The change as one would say it. */
export function inWords(change: string): string {
  const [, verb, stage] =
    /^(parallel|cache|without python in|without|kernels of) (.+)$/.exec(change) ?? [];
  if (!verb || !stage) return change === "prefetch" ? "prefetch at the end" : change;
  const name = stageName(stage);
  switch (verb) {
    case "parallel":
      return `${name} in parallel`;
    case "cache":
      return `cache after ${name}`;
    case "kernels of":
      return `kernels of ${name}`;
    default:
      return `${verb} ${name}`;
  }
}
