// The step as one bar: every instant in one place, adding to the whole.

import type { Report } from "../data/types";
import { categoryName, ms, percent } from "../format";
import "./step-bar.css";

interface StepBarProps {
  report: Report;
  /** What the full width stands for, where bars of several runs lie under one another. */
  scaleMs?: number;
  /** What is not known is said elsewhere. */
  short?: boolean;
}

export function StepBar({ report, scaleMs, short }: StepBarProps) {
  const parts = report.breakdown.filter((it) => it.share > 0).sort((a, b) => b.share - a.share);
  if (parts.length === 0) return null;
  const said = parts.map((it) => `${categoryName(it.category)} ${percent(it.share)}`).join(", ");
  // What was told from the device although the host is silent is measured after all.
  const unmeasured = report.breakdown_unknown.filter(
    (it) => !parts.some((part) => part.category === it.category),
  );
  const whole = parts.reduce((sum, it) => sum + it.ms_per_step, 0);
  const scale = scaleMs && scaleMs > 0 ? whole / scaleMs : 1;
  return (
    <figure class="step-bar">
      <div
        class="bar"
        role="img"
        aria-label={`Where the step goes: ${said}`}
        style={{ width: `${Math.min(scale, 1) * 100}%` }}
      >
        {parts.map((it) => (
          <div
            key={it.category}
            class={`part ${it.category} ${it.category === "idle" ? "hatched" : ""}`}
            style={{ width: `${it.share * 100}%`, backgroundColor: `var(--${it.category})` }}
            title={`${categoryName(it.category)}: ${ms(it.ms_per_step)} a step, ${percent(it.share)}`}
          >
            {it.share * scale >= 0.09 && (
              <span aria-hidden="true">
                {categoryName(it.category)} {percent(it.share)}
              </span>
            )}
          </div>
        ))}
      </div>
      <figcaption>
        {parts.map((it) => (
          <span key={it.category}>
            <i
              class={`swatch ${it.category === "idle" ? "hatched" : ""}`}
              style={{ backgroundColor: `var(--${it.category})` }}
            />
            {categoryName(it.category)} <b>{percent(it.share)}</b>{" "}
            <span class="faint">{ms(it.ms_per_step)}</span>
          </span>
        ))}
        {!short &&
          reasons(unmeasured).map(([why, names]) => (
            <span key={why} class="faint">
              {names.join(", ")}: not measured, {why}
            </span>
          ))}
      </figcaption>
    </figure>
  );
}

/** Those with the same reason together. */
function reasons(unknown: Report["breakdown_unknown"]): [string, string[]][] {
  const by = new Map<string, string[]>();
  for (const { category, why } of unknown) {
    by.set(why, [...(by.get(why) ?? []), categoryName(category)]);
  }
  return [...by];
}
