// The little Markdown that rules are documented in, made into elements: never into HTML text.

import type { ComponentChildren } from "preact";
import "./markdown.css";

export type Block =
  | { kind: "heading"; text: string }
  | { kind: "paragraph"; text: string }
  | { kind: "code"; text: string }
  | { kind: "list"; items: string[] };

export function blocks(source: string): Block[] {
  const found: Block[] = [];
  let paragraph: string[] = [];
  let code: string[] | null = null;
  const close = () => {
    if (paragraph.length > 0) found.push({ kind: "paragraph", text: paragraph.join(" ") });
    paragraph = [];
  };
  for (const raw of source.split("\n")) {
    // Lifted from doc comments, whose lines begin with a space.
    const line = raw.replace(/^ /, "").trimEnd();
    if (line.startsWith("```")) {
      if (code) found.push({ kind: "code", text: code.join("\n") });
      else close();
      code = code ? null : [];
    } else if (code) {
      code.push(line);
    } else if (line === "") {
      close();
    } else if (/^#+ /.test(line)) {
      close();
      found.push({ kind: "heading", text: line.replace(/^#+ /, "") });
    } else if (/^[-*] /.test(line)) {
      close();
      const last = found.at(-1);
      if (last?.kind === "list") last.items.push(line.slice(2));
      else found.push({ kind: "list", items: [line.slice(2)] });
    } else if (/^ {2,}\S/.test(line) && paragraph.length === 0 && found.at(-1)?.kind === "list") {
      const items = (found.at(-1) as { items: string[] }).items;
      items.push(`${items.pop()} ${line.trim()}`);
    } else {
      paragraph.push(line.trim());
    }
  }
  if (code) found.push({ kind: "code", text: code.join("\n") });
  close();
  return found;
}

/** `code`, **bold**, and the text of links. */
export function inline(text: string): ComponentChildren[] {
  return text
    .replace(/\[([^\]]+)\]\([^)]*\)/g, "$1")
    .split(/(`[^`]+`|\*\*[^*]+\*\*)/)
    .filter(Boolean)
    .map((it, at) => {
      if (it.length > 2 && it.startsWith("`")) return <code key={at}>{it.slice(1, -1)}</code>;
      if (it.length > 4 && it.startsWith("**")) return <b key={at}>{it.slice(2, -2)}</b>;
      return it;
    });
}

export function Markdown({ source }: { source: string }) {
  return (
    <div class="markdown">
      {blocks(source).map((it, at) => {
        switch (it.kind) {
          case "heading":
            return <h3 key={at}>{inline(it.text)}</h3>;
          case "code":
            return <pre key={at}>{it.text}</pre>;
          case "list":
            return (
              <ul key={at}>
                {it.items.map((item, n) => (
                  <li key={n}>{inline(item)}</li>
                ))}
              </ul>
            );
          default:
            return <p key={at}>{inline(it.text)}</p>;
        }
      })}
    </div>
  );
}
