// What a step would take if something changed: always a range, drawn under the step as it is.

import type { WhatIf } from "../data/tables";
import type { Finding, Fix } from "../data/types";
import { gain, plain, time } from "../format";
import "./what-if.css";

const OF_INPUT = /^(prefetch$|parallel |cache |without python in |without Iterator)/;

/** Whether a change is one of the input pipeline's. */
export const isOfInput = (it: WhatIf): boolean =>
  OF_INPUT.test(it.change) || it.change === "without input";

/** What a step takes after a change, and how much faster that is. */
export interface After {
  best_ps: number;
  likely_ps: number;
  worst_ps: number;
  faster: string;
  /** Why nothing is promised. */
  why: string | null;
}

/**
 * What a finding promises of a change is what is shown of it, also here: it rests on the replayed
 * steps, and counts besides how far runs differ and what recording costs.
 */
export function after(it: WhatIf, findings: Finding[]): After {
  const all = findings.flatMap((of) => [of, ...(of.symptoms ?? [])]);
  const fixes = all.flatMap((of) => of.fix).filter((fix) => fix.what_if === it.change);
  const fix: Fix | undefined = fixes.find((fix) => fix.step_after_ms) ?? fixes[0];
  const step = fix?.step_after_ms;
  if (fix && step) {
    const ps = (ms: number) => ms * 1e9;
    return {
      best_ps: ps(step.low),
      likely_ps: ps(step.likely),
      worst_ps: ps(step.high),
      faster: gain(fix.speedup_low, fix.speedup_high),
      why: null,
    };
  }
  return {
    best_ps: it.best_ps,
    likely_ps: it.new_step_ps,
    worst_ps: it.worst_ps,
    faster: fix ? "not told" : faster(it),
    why: fix?.why ?? null,
  };
}

interface WhatIfsProps {
  rows: WhatIf[];
  findings: Finding[];
  label: string;
}

export function WhatIfs({ rows: given, findings, label }: WhatIfsProps) {
  const rows = given
    .map((it) => ({ ...it, ...after(it, findings) }))
    .sort((a, b) => a.likely_ps - b.likely_ps);
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
        {rows.map((it) => (
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
                <i class="likely" style={{ left: at(it.likely_ps) }} />
              </div>
            </td>
            <td class="number">
              {time(it.best_ps) === time(it.worst_ps)
                ? time(it.best_ps)
                : `${time(it.best_ps)} – ${time(it.worst_ps)}`}
            </td>
            <td class="number" title={it.why ?? undefined}>
              {it.faster}
            </td>
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
