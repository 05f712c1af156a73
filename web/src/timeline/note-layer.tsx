// Marks with a note, over the canvas: a flag at a time, its text beside it.

import { useEffect, useRef } from "preact/hooks";
import type { Model } from "./model";
import { RULER } from "./ruler";

export function NoteLayer({ model }: { model: Model }) {
  const notes = model.notes.value;
  const { stage } = model;
  if (notes.length === 0 || !stage) return null;
  const { from, to } = stage.seen.value;
  const width = stage.view.width;
  return (
    <div class="tl-notes" style={{ top: `${RULER}px` }} role="group" aria-label="Notes">
      {notes.map((it, at) => {
        const x = ((it.time - from) / (to - from)) * width;
        const isWriting = model.writing.value === at;
        if (x < -1 || x > width + 1) return null;
        return (
          <div
            key={at}
            class={`tl-note ${x > width - 260 ? "tl-note-left" : ""}`}
            style={{ transform: `translateX(${x}px)` }}
          >
            {isWriting ? (
              <Writing model={model} at={at} />
            ) : (
              <button title="Edit this note" onClick={() => (model.writing.value = at)}>
                {it.text || "mark"}
              </button>
            )}
          </div>
        );
      })}
    </div>
  );
}

function Writing({ model, at }: { model: Model; at: number }) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  const done = () => (model.writing.value = null);
  return (
    <span class="tl-writing">
      <input
        ref={input}
        type="text"
        aria-label="Note at this time"
        placeholder="Note; part of this page's address"
        maxLength={200}
        value={model.notes.value[at]?.text ?? ""}
        onInput={(it) => model.writeNote(at, it.currentTarget.value)}
        onKeyDown={(it) => {
          if (it.key === "Enter") done();
        }}
      />
      <button onClick={done}>Done</button>
      <button onClick={() => model.removeNote(at)}>Remove</button>
    </span>
  );
}
