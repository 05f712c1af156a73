// Empty is a sentence and a command, never a blank.

import type { ComponentChildren } from "preact";
import { ApiError } from "../data/client";

/** What is missing, why, and the command that brings it. */
export function Empty({ children, command }: { children: ComponentChildren; command?: string }) {
  return (
    <div class="empty">
      <p>{children}</p>
      {command && <pre>{command}</pre>}
    </div>
  );
}

export function Failed({ error }: { error: Error }) {
  const hint = error instanceof ApiError ? error.hint : null;
  return (
    <div class="pad" role="alert">
      <p class="failed">{error.message}</p>
      {hint && <p class="faint">{hint}</p>}
    </div>
  );
}
