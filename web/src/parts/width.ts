// How wide an element is, also after the window has changed.

import { useLayoutEffect, useState } from "preact/hooks";

export function useWidth(of: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(1000);
  useLayoutEffect(() => {
    const element = of.current;
    if (!element) return;
    const measure = () => setWidth(element.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return width;
}
