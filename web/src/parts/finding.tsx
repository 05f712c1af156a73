// A finding as a row: the title, what it gives at the right, evidence in one line; more on opening.

import { useEffect, useRef } from "preact/hooks";
import { useAnswer } from "../data/store";
import type { Finding, RuleDoc } from "../data/types";
import { percent, sentence } from "../format";
import { remember, route } from "../router";
import { Code } from "./copy";
import { bestPlace, placeOf, type Spotlights } from "./evidence";
import { inline, Markdown } from "./markdown";
import "./finding.css";

interface FindingsProps {
  findings: Finding[];
  /** What of the evidence is on the timeline; null while that is not known. */
  lit: Spotlights | null;
}

export function Findings({ findings, lit }: FindingsProps) {
  const { open } = route.value.params;
  // The first is open until somebody chooses otherwise.
  const opened = new Set((open ?? "1").split(",").map(Number));
  const toggle = (number: number) => {
    if (!opened.delete(number)) opened.add(number);
    const text = [...opened].filter((it) => it > 0).join(",");
    remember({ open: text === "1" ? null : text || "0" });
  };
  return (
    <ol class="findings" aria-label="Findings">
      {findings.map((it, at) => (
        <Row
          key={at}
          finding={it}
          number={at + 1}
          open={opened.has(at + 1)}
          toggle={() => toggle(at + 1)}
          lit={lit}
        />
      ))}
    </ol>
  );
}

interface RowProps {
  finding: Finding;
  number: number;
  open: boolean;
  toggle: () => void;
  lit: Spotlights | null;
}

function Row({ finding, number, open, toggle, lit }: RowProps) {
  const name = String(number - 1);
  const place = lit && bestPlace(name, finding.evidence, lit);
  const id = `finding-${number}`;
  return (
    <li class={`finding ${finding.severity}`} id={id}>
      <span class="ordinal" aria-hidden="true">
        {number}
      </span>
      <div class="head">
        <button class="title" aria-expanded={open} aria-controls={`${id}-more`} onClick={toggle}>
          {sentence(finding.title)}
        </button>
        <span class="gain">{finding.gain}</span>
      </div>
      <div class="sub">
        <span class="rule">
          <RuleLink rule={finding.rule} /> · <Severity it={finding} />
        </span>
        {!open && <span class="one-line">{finding.evidence[0]?.text}</span>}
        {place && (
          <a class="show-me" href={place.href} title={`Opens ${place.what}`}>
            Show me
            <span class="visually-hidden">
              {" "}
              {place.what}: {finding.title}
            </span>
          </a>
        )}
      </div>
      <div class="more" id={`${id}-more`} hidden={!open}>
        {open && <More finding={finding} name={name} lit={lit} />}
      </div>
    </li>
  );
}

const Severity = ({ it }: { it: Finding }) => (
  <span
    class={`severity ${it.severity}`}
    title={`How much it matters; ${percent(it.confidence)} sure of the cause`}
  >
    {it.severity}
  </span>
);

function More(props: { finding: Finding; name: string; lit: Spotlights | null }) {
  const { finding, name, lit } = props;
  return (
    <>
      <ul class="evidence">
        {finding.evidence.map((it, at) => {
          const place = lit && placeOf(`${name}.${at}`, it, lit);
          return (
            <li key={at}>
              {sentence(it.text)}{" "}
              {place && (
                <a href={place.href} title={`Opens ${place.what}`}>
                  {place.short}
                  <span class="visually-hidden">: {it.text}</span>
                </a>
              )}
            </li>
          );
        })}
      </ul>
      {finding.fix.map((it, at) => (
        <div key={at} class="fix">
          <p>
            <span aria-hidden="true">→ </span>
            {inline(it.edit ? `${it.text}:` : it.text)}
            {it.gain && <span class="of-edit"> {it.gain}</span>}
          </p>
          {it.edit && <Code text={it.edit} label={it.text} />}
          {!it.gain && it.why && <p class="of-edit">No gain is predicted: {it.why}.</p>}
        </div>
      ))}
      {finding.symptoms && finding.symptoms.length > 0 && (
        <ul class="symptoms" aria-label="Also triggers">
          {finding.symptoms.map((it, at) => {
            const place = lit && bestPlace(`${name}.${at}`, it.evidence, lit);
            return (
              <li key={at}>
                Also triggers <RuleLink rule={it.rule} />: {sentence(it.title)}{" "}
                {place && (
                  <a href={place.href} title={`Opens ${place.what}`}>
                    Show me<span class="visually-hidden">: {it.title}</span>
                  </a>
                )}
              </li>
            );
          })}
        </ul>
      )}
    </>
  );
}

/** Opens what the rule looks for, when it is wrong, and what to do. */
export function RuleLink({ rule }: { rule: string }) {
  return (
    <button
      class="rule-link mono"
      title={`What ${rule} looks for`}
      aria-haspopup="dialog"
      onClick={() => remember({ rule })}
    >
      {rule}
    </button>
  );
}

/** Beside the view, while the address names a rule. */
export function RulePanel() {
  const { rule } = route.value.params;
  const { value: rules, error } = useAnswer<RuleDoc[]>(rule ? "rules" : null);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!rule) return;
    const before = document.activeElement;
    box.current?.focus();
    const keys = (it: KeyboardEvent) => {
      if (it.key !== "Escape" || it.defaultPrevented) return;
      it.preventDefault();
      remember({ rule: null });
    };
    addEventListener("keydown", keys);
    return () => {
      removeEventListener("keydown", keys);
      if (before instanceof HTMLElement) before.focus();
    };
  }, [rule]);
  if (!rule) return null;
  const found = rules?.find((it) => it.name === rule);
  return (
    <div class="rule-panel" role="dialog" aria-label={`Rule ${rule}`} tabIndex={-1} ref={box}>
      <header>
        <h2 class="mono">{rule}</h2>
        <button onClick={() => remember({ rule: null })} aria-label="Close the rule">
          Close
        </button>
      </header>
      {error ? (
        <p class="failed">{error.message}</p>
      ) : found ? (
        <Markdown source={found.doc} />
      ) : rules ? (
        <p>This build knows no such rule.</p>
      ) : (
        <div class="skeleton">…</div>
      )}
      <p class="faint">
        The same in a terminal: <code>strobe explain {rule}</code>
      </p>
    </div>
  );
}
