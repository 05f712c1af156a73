// What is known of one row, at the right of its table. Esc closes it.

import type { ComponentChildren } from "preact";
import { useEscape } from "./escape";
import "./details.css";

export interface Figure {
  title: string;
  text: ComponentChildren;
  doc?: string | undefined;
}

export function Details(props: {
  label: string;
  name: string;
  figures: Figure[];
  onClose: () => void;
  children?: ComponentChildren;
}) {
  useEscape(true, props.onClose);
  return (
    <aside class="details" aria-label={props.label}>
      <header>
        <h2>{props.label}</h2>
        <button onClick={props.onClose} title="Close (Esc)" aria-label="Close">
          ✕
        </button>
      </header>
      <p class="mono name">{props.name}</p>
      <dl>
        {props.figures.map((it) => (
          <div key={it.title} title={it.doc}>
            <dt>{it.title}</dt>
            <dd>{it.text}</dd>
          </div>
        ))}
      </dl>
      {props.children}
    </aside>
  );
}
