// What lies under the pointer: name, how long, its own part, its share of the step.

import { useSignal, useSignalEffect } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { EventDetails } from "../data/types";
import { categoryName, percent, thousands, time } from "../format";
import { HEAD_WIDTH } from "./edge";
import type { Model } from "./model";
import type { Pointed } from "./stage";
import { counterText } from "./units";

/** The pointer rests before anything is asked. */
const REST_MS = 120;
const APART = 14;
const MARGIN = 4;

export function Hover({ model }: { model: Model }) {
  const pointed = model.stage?.pointed.value ?? null;
  const details = useDetails(model);
  const box = useRef<HTMLDivElement>(null);
  // Its size is known once it is there: it never reaches beyond the stage.
  useLayoutEffect(() => {
    const element = box.current;
    const stage = element?.parentElement;
    if (!element || !stage || !pointed) return;
    const head = HEAD_WIDTH.value;
    const { x, y } = placed(
      { x: head + pointed.x, y: pointed.y },
      { width: element.offsetWidth, height: element.offsetHeight },
      { width: stage.clientWidth, height: stage.clientHeight },
    );
    element.style.transform = `translate(${x}px, ${y}px)`;
  });
  if (!pointed || (!pointed.span && pointed.value === null)) return null;
  return (
    <div class="tl-hover" ref={box} aria-hidden="true">
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

interface Size {
  width: number;
  height: number;
}

/** Right of and below the pointer, else left or above, and always wholly inside. */
export function placed(at: { x: number; y: number }, box: Size, room: Size) {
  const along = (pointer: number, size: number, all: number) => {
    const after = pointer + APART;
    const before = pointer - APART - size;
    const wanted = after + size <= all - MARGIN ? after : before;
    return Math.max(Math.min(wanted, all - MARGIN - size), MARGIN);
  };
  return { x: along(at.x, box.width, room.width), y: along(at.y, box.height, room.height) };
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
  const ruler = model.stage?.ruler;
  const step = ruler?.steps[ruler.at(details?.start_ps ?? span.start)];
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
        <div>{time(span.total)} in total</div>
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
        {details && `, ${time(details.self_ps)} self time`}
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
