// A handle that follows the pointer until it is let go.

/** Tells how far the pointer went to the right since it took the handle. */
export function follow(event: PointerEvent, moved: (by: number) => void): void {
  const handle = event.currentTarget as HTMLElement;
  const from = event.clientX;
  const move = (it: PointerEvent) => moved(it.clientX - from);
  handle.setPointerCapture(event.pointerId);
  handle.addEventListener("pointermove", move);
  handle.addEventListener(
    "lostpointercapture",
    () => handle.removeEventListener("pointermove", move),
    { once: true },
  );
  event.preventDefault();
}
