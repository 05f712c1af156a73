// The keys, on a page over the page.

import { useEffect, useRef } from "preact/hooks";
import { GESTURES, KEYS } from "./input";
import type { Model } from "./model";

export function Help({ model }: { model: Model }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const open = model.helping.value;
  useEffect(() => {
    if (open && !dialog.current?.open) dialog.current?.showModal();
    if (!open && dialog.current?.open) dialog.current.close();
  }, [open]);
  return (
    <dialog
      class="tl-help"
      ref={dialog}
      aria-label="Keys of the timeline"
      onClose={() => (model.helping.value = false)}
      onClick={(it) => it.target === dialog.current && (model.helping.value = false)}
    >
      <h2>Keys</h2>
      <List rows={KEYS} />
      <h2>Mouse and touch</h2>
      <List rows={GESTURES} />
      <button onClick={() => (model.helping.value = false)}>Close</button>
    </dialog>
  );
}

function List({ rows }: { rows: [string, string][] }) {
  return (
    <dl>
      {rows.map(([key, what]) => (
        <div key={key}>
          <dt>{key}</dt>
          <dd>{what}</dd>
        </div>
      ))}
    </dl>
  );
}
