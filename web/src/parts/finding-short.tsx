// The findings that belong to a view, one line each; the overview has them in full.

import type { Finding, Report } from "../data/types";
import { sentence } from "../format";
import { link } from "../router";
import "./finding.css";

export function FindingsAbout({ report, rules }: { report: Report; rules: RegExp }) {
  const about = report.findings
    .map((it, at) => ({ it, at }))
    .filter(({ it }) => matches(it, rules));
  if (about.length === 0) return null;
  return (
    <ul class="findings" aria-label="Findings about this">
      {about.map(({ it, at }) => (
        <li key={at} class={`finding ${it.severity}`}>
          <span class="ordinal" aria-hidden="true">
            {at + 1}
          </span>
          <div class="head">
            <span class="said">
              {sentence(it.title)} <span class="faint mono">{it.rule}</span>
            </span>
            <span class="gain">{it.gain}</span>
            <a href={link("overview", { open: at + 1 })}>
              What to change<span class="visually-hidden">: {it.title}</span>
            </a>
          </div>
        </li>
      ))}
    </ul>
  );
}

const matches = (it: Finding, rules: RegExp): boolean =>
  rules.test(it.rule) || (it.symptoms ?? []).some((one) => rules.test(one.rule));
