// The step as one bar: every instant in one place, adding to the whole.

import type { Report } from "../data/types";
import { categoryName, ms, percent } from "../format";
import "./step-bar.css";

export function StepBar({ report }: { report: Report }) {
  const parts = report.breakdown.filter((it) => it.share > 0).sort((a, b) => b.share - a.share);
  if (parts.length === 0) return null;
  const said = parts.map((it) => `${categoryName(it.category)} ${percent(it.share)}`).join(", ");
  return (
    <figure class="step-bar">
      <div class="bar" role="img" aria-label={`Where the step goes: ${said}`}>
        {parts.map((it) => (
          <div
            key={it.category}
            class={it.category === "idle" ? "hatched" : ""}
            style={{ width: `${it.share * 100}%`, backgroundColor: `var(--${it.category})` }}
            title={`${categoryName(it.category)}: ${ms(it.ms_per_step)} a step, ${percent(it.share)}`}
          />
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
      </figcaption>
    </figure>
  );
}
