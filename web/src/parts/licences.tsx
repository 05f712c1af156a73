// Whose work the page is made of: an exported file has the texts inside, a server gives them.

import { useRef } from "preact/hooks";
import "./licences.css";

export function Licences() {
  const dialog = useRef<HTMLDialogElement>(null);
  if (!__EXPORTED__) {
    return (
      <a class="licences" href="licences.txt" target="_blank" rel="noreferrer">
        Licences
      </a>
    );
  }
  return (
    <>
      <button class="licences" onClick={() => dialog.current?.showModal()}>
        Licences
      </button>
      <dialog ref={dialog} class="licences-text" aria-label="Licences">
        <button autofocus onClick={() => dialog.current?.close()}>
          Close
        </button>
        <pre>{document.getElementById("licences")?.textContent}</pre>
      </dialog>
    </>
  );
}
