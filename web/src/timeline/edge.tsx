// An edge that can be dragged, between the timeline and what is beside it.

import { signal, type Signal } from "@preact/signals";
import { follow } from "../parts/drag";

/** A width that lasts from visit to visit. */
export interface Width {
  readonly value: number;
  set(px: number): void;
}

function width(key: string, usual: number, least: number, most: number): Width {
  const now: Signal<number> = signal(clamped(Number(stored(key)) || usual, least, most));
  return {
    get value() {
      return now.value;
    },
    set(px) {
      now.value = clamped(px, least, most);
      try {
        localStorage.setItem(key, String(now.value));
      } catch {
        // A file opened from disk may have no storage: then it lasts as long as the page.
      }
    },
  };
}

const clamped = (px: number, least: number, most: number): number =>
  Math.round(Math.min(Math.max(px, least), most));

function stored(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export const HEAD_WIDTH = width("timeline-names", 208, 96, 520);
export const PANEL_WIDTH = width("timeline-panel", 360, 240, 900);

interface EdgeProps {
  size: Width;
  label: string;
  /** Which way the width grows. */
  grows: "left" | "right";
}

/** By pointer, or by arrow keys while it has the focus. */
export function Edge({ size, label, grows }: EdgeProps) {
  const sign = grows === "right" ? 1 : -1;
  const drag = (event: PointerEvent) => {
    if (event.button !== 0) return;
    const start = size.value;
    follow(event, (by) => size.set(start + sign * by));
    event.stopPropagation();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const by = { ArrowLeft: -16, ArrowRight: 16 }[event.key];
    if (by === undefined) return;
    size.set(size.value + sign * by);
    event.stopPropagation();
    event.preventDefault();
  };
  return (
    <div
      class="tl-edge"
      role="separator"
      aria-orientation="vertical"
      aria-label={label}
      aria-valuenow={size.value}
      tabIndex={0}
      title="Drag to resize"
      onPointerDown={drag}
      onKeyDown={onKeyDown}
    />
  );
}
