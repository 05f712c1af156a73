// Search, steps, zoom, and which tracks are shown.

import { useRef } from "preact/hooks";
import { thousands, time } from "../format";
import type { Model } from "./model";
import type { TrackSort } from "./tracks";

export function Bar({ model }: { model: Model }) {
  const glide = (of: { from: number; to: number }) => model.stage?.glide(of.from, of.to);
  const zoom = (by: number) => model.stage?.glideZoom(by, model.stage.view.width / 2);
  const { steps } = model.timeline;
  return (
    <div class="tl-bar" role="toolbar" aria-label="Timeline">
      <Search model={model} />
      {steps.length > 0 && (
        <span class="tl-set">
          <button
            aria-label="Step before"
            title="Step before  ["
            onClick={() => model.goToStep(-1)}
          >
            ‹
          </button>
          <button title="The typical step  h" onClick={() => glide(model.home())}>
            Typical step
          </button>
          <button aria-label="Next step" title="Next step  ]" onClick={() => model.goToStep(1)}>
            ›
          </button>
        </span>
      )}
      <span class="tl-set">
        <button aria-label="Zoom out" title="Zoom out  s" onClick={() => zoom(1 / 1.6)}>
          −
        </button>
        <button title="The whole trace  0" onClick={() => glide(model.whole())}>
          Whole trace
        </button>
        <button aria-label="Zoom in" title="Zoom in  w" onClick={() => zoom(1.6)}>
          +
        </button>
      </span>
      <button
        aria-pressed={model.selecting.value}
        title="Drag selects a range  m"
        onClick={() => (model.selecting.value = !model.selecting.value)}
      >
        Select range
      </button>
      <button
        title="A mark with a note in the middle; at the pointer  k"
        onClick={() =>
          model.stage && model.addNote(model.stage.view.time(model.stage.view.width / 2))
        }
      >
        Note
      </button>
      <span class="tl-gap" />
      <input
        type="search"
        class="tl-filter"
        placeholder="Filter tracks"
        aria-label="Filter tracks by name"
        value={model.filter.value}
        onInput={(it) => model.filterBy(it.currentTarget.value)}
      />
      <select
        aria-label="Order of tracks"
        value={model.sort.value}
        onChange={(it) => model.sortBy(it.currentTarget.value as TrackSort)}
      >
        <option value="default">Usual order</option>
        <option value="events">Most events</option>
        <option value="name">By name</option>
      </select>
      <button
        aria-label="Keys"
        title="Keys  ?"
        aria-expanded={model.helping.value}
        onClick={() => (model.helping.value = !model.helping.value)}
      >
        ?
      </button>
    </div>
  );
}

function Search({ model }: { model: Model }) {
  const input = useRef<HTMLInputElement>(null);
  const found = model.found.value;
  const timer = useRef(0);
  const shownAt = model.hit.value >= 0 ? `${thousands(model.hit.value + 1)} of ` : "";
  return (
    <div class="tl-search" role="search">
      <input
        id="tl-search"
        ref={input}
        type="search"
        placeholder="Search events  /"
        aria-label="Search events by name"
        value={model.query.value}
        onInput={(it) => {
          const text = it.currentTarget.value;
          clearTimeout(timer.current);
          timer.current = window.setTimeout(() => model.search(text), 150);
        }}
        onKeyDown={(it) => {
          if (it.key !== "Enter") return;
          if (model.query.value !== it.currentTarget.value) model.search(it.currentTarget.value);
          else model.walk(it.shiftKey ? -1 : 1);
        }}
      />
      {found && (
        <>
          <span class="tl-count faint">
            {shownAt}
            {thousands(found.total)}
          </span>
          <button aria-label="Hit before" title="Hit before  N" onClick={() => model.walk(-1)}>
            ‹
          </button>
          <button aria-label="Next hit" title="Next hit  n" onClick={() => model.walk(1)}>
            ›
          </button>
          <div class="tl-found" role="group" aria-label="Names found">
            {found.total === 0 && <p class="faint">No event has this in its name.</p>}
            {found.names.length > 0 && (
              <table>
                <tbody>
                  {found.names.slice(0, 12).map((it) => (
                    <tr key={it.name}>
                      <td class="tl-long" title={it.name}>
                        <button
                          class="tl-plain"
                          onClick={() => {
                            model.search(it.name);
                            input.current?.blur();
                          }}
                        >
                          {it.name}
                        </button>
                      </td>
                      <td class="number">{thousands(it.count)}</td>
                      <td class="number">{time(it.total_ps)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
            {found.names.length > 12 && (
              <p class="faint">and {thousands(found.names.length - 12)} other names</p>
            )}
          </div>
        </>
      )}
    </div>
  );
}
