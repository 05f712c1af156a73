// Light or dark: the system's choice until the user makes one.

import { signal } from "@preact/signals";

export type Theme = "light" | "dark";

const dark = matchMedia("(prefers-color-scheme: dark)");

function stored(): Theme | null {
  try {
    const it = localStorage.getItem("theme");
    return it === "light" || it === "dark" ? it : null;
  } catch {
    return null; // a file opened from disk may have no storage
  }
}

export const theme = signal<Theme>(stored() ?? (dark.matches ? "dark" : "light"));

theme.subscribe((it) => {
  document.documentElement.dataset["theme"] = it;
});

dark.addEventListener("change", () => {
  if (!stored()) theme.value = dark.matches ? "dark" : "light";
});

export function choose(it: Theme): void {
  theme.value = it;
  try {
    localStorage.setItem("theme", it);
  } catch {
    // Then the choice lasts as long as the page.
  }
}

/** A colour of the design, for what is drawn on a canvas. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
