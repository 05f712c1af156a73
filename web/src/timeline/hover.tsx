// What lies under the pointer: name, how long, its own part, its share of the step.

import { useSignal, useSignalEffect } from "@preact/signals";
import type { EventDetails } from "../data/types";
import { categoryName, percent, thousands, time } from "../format";
import type { Model } from "./model";
import type { Pointed } from "./stage";
import { counterText } from "./units";

/** The pointer rests before anything is asked. */
const REST_MS = 120;
const WIDTH = 340;

export function Hover({ model }: { model: Model }) {
  const pointed = model.stage?.pointed.value ?? null;
  const details = useDetails(model);
  if (!pointed || (!pointed.span && pointed.value === null)) return null;
  const width = model.stage?.view.width ?? 0;
  const flip = pointed.x + WIDTH + 24 > width && pointed.x > WIDTH;
  const low = pointed.y + 180 > (model.stage?.height ?? 0);
  const place = {
    transform: `translate(${pointed.x + (flip ? -16 : 16)}px, ${pointed.y + (low ? -12 : 16)}px) translate(${flip ? "-100%" : "0"}, ${low ? "-100%" : "0"})`,
  };
  return (
    <div class="tl-hover" style={place} aria-hidden="true">
      {pointed.span ? (
        <SpanText
          model={model}
          pointed={pointed}
          details={details?.event === pointed.span.event ? details : null}
        />
      ) : (
        <>
          <b>{pointed.track.name}</b>
          <div>{counterText(pointed.track.name, pointed.value)}</div>
        </>
      )}
    </div>
  );
}

function useDetails(model: Model): EventDetails | null {
  const details = useSignal<EventDetails | null>(null);
  useSignalEffect(() => {
    const event = model.stage?.pointed.value?.span?.event;
    if (event === undefined || event === details.peek()?.event) return;
    const timer = setTimeout(() => {
      model.load(event).then(
        (it) => {
          details.value = it;
          const { stage } = model;
          if (!stage || stage.pointed.peek()?.span?.event !== event) return;
          stage.whole = it;
          stage.draw();
        },
        () => {},
      );
    }, REST_MS);
    return () => clearTimeout(timer);
  });
  return details.value;
}

function SpanText(props: { model: Model; pointed: Pointed; details: EventDetails | null }) {
  const { model, pointed, details } = props;
  const span = pointed.span!;
  const kind = model.timeline.kinds[span.kind];
  const name = span.name ?? details?.name ?? "…";
  const dur = details?.dur_ps ?? span.dur;
  const { ruler } = model.stage!;
  const step = ruler.steps[ruler.at(details?.start_ps ?? span.start)];
  const share = dur !== null && step && step.dur_ps > 0 ? dur / step.dur_ps : null;
  const category = kind?.category;
  const sign = (
    <span class="faint">
      <i
        class="swatch"
        style={{ backgroundColor: category ? `var(--${category})` : "var(--strong-line)" }}
      />
      {kind?.name.replaceAll("_", " ")}
      {category && category !== kind?.name && ` · ${categoryName(category)}`}
    </span>
  );
  if (span.count > 1) {
    return (
      <>
        <b>{thousands(span.count)} events</b>
        <div>{time(span.total)} together</div>
        <div>
          longest: {name}, {time(dur)}
        </div>
        {sign}
      </>
    );
  }
  return (
    <>
      <b>{name}</b>
      <div>
        {time(dur)}
        {details && `, ${time(details.self_ps)} of its own`}
      </div>
      {share !== null && step && (
        <div>
          {percent(share)} of step {step.step}
        </div>
      )}
      {sign}
    </>
  );
}
