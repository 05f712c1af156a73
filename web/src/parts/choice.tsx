// One of a few, as buttons side by side.

import "./choice.css";

export interface Option {
  id: string;
  title: string;
  doc?: string;
}

export function Choice(props: {
  label: string;
  options: Option[];
  chosen: string;
  onChoose: (id: string) => void;
}) {
  return (
    <div class="choice" role="group" aria-label={props.label}>
      {props.options.map((it) => (
        <button
          key={it.id}
          aria-pressed={it.id === props.chosen}
          title={it.doc}
          onClick={() => props.onChoose(it.id)}
        >
          {it.title}
        </button>
      ))}
    </div>
  );
}
