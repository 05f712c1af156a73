// Code that is there to be copied.

import { useState } from "preact/hooks";
import "./copy.css";

export function Code({ text, label }: { text: string; label: string }) {
  return (
    <div class="copy-code">
      {/* Scrolls sideways, so it must be reachable. */}
      <pre tabIndex={0} role="group" aria-label={label}>
        {text}
      </pre>
      <CopyButton text={text} label={label} />
    </div>
  );
}

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [said, setSaid] = useState("Copy");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid("Copied");
    } catch {
      setSaid("Select it: the browser refused");
    }
    setTimeout(() => setSaid("Copy"), 2000);
  };
  return (
    <button class="copy" onClick={() => void copy()} aria-label={`${said}: ${label}`}>
      <span aria-live="polite">{said}</span>
    </button>
  );
}
