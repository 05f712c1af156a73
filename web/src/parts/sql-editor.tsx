// The editor of the query view, loaded when that is opened.
// It lives in a shadow root: there its styles are adopted sheets, which the strict policy of the
// server allows, and not style elements, which it does not.

import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  type Completion,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { sql, SQLite, type SQLNamespace } from "@codemirror/lang-sql";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, Prec } from "@codemirror/state";
import { drawSelection, EditorView, keymap, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";
import type { TableSchema } from "../data/types";

export interface Editor {
  /** In place of all that is there. */
  set: (text: string) => void;
  insert: (text: string) => void;
}

export default function SqlEditor(props: {
  /** What is there first; later on the editor is told by `set`. */
  text: string;
  schema: TableSchema[];
  onChange: (text: string) => void;
  onRun: () => void;
  /** Given once the editor is there. */
  onReady: (editor: Editor) => void;
}) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const language = useRef(new Compartment());

  useEffect(() => {
    const element = host.current!;
    const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
    const made = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: props.text,
        extensions: [
          Prec.highest(
            keymap.of([
              {
                key: "Mod-Enter",
                run: () => {
                  latest.current.onRun();
                  return true;
                },
              },
            ]),
          ),
          language.current.of(dialect(props.schema)),
          autocompletion({ icons: false }),
          closeBrackets(),
          bracketMatching(),
          history(),
          typedOver,
          drawSelection(),
          EditorView.lineWrapping,
          placeholder("select …"),
          keymap.of([
            ...closeBracketsKeymap,
            ...completionKeymap,
            ...defaultKeymap,
            ...historyKeymap,
          ]),
          syntaxHighlighting(colours),
          looks,
          EditorView.contentAttributes.of({
            "aria-label": "SQL query, Ctrl+Enter runs it",
            spellcheck: "false",
          }),
          EditorView.updateListener.of((it) => {
            if (it.docChanged) latest.current.onChange(it.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = made;
    latest.current.onReady({
      insert: (text) => {
        made.dispatch(made.state.replaceSelection(text));
        made.focus();
      },
      set: (text) => {
        if (made.state.doc.toString() === text) return;
        made.dispatch({ changes: { from: 0, to: made.state.doc.length, insert: text } });
      },
    });
    return () => {
      made.destroy();
      view.current = null;
    };
  }, []);

  useEffect(() => {
    view.current?.dispatch({ effects: language.current.reconfigure(dialect(props.schema)) });
  }, [props.schema]);

  return <div class="sql-editor" ref={host} />;
}

/**
 * Letters typed over a selection: left to the browser, it would keep the colour of what was there
 * by inline styles, which the policy refuses.
 */
const typedOver = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    const { data, inputType } = event;
    if (inputType !== "insertText" || !data || !/^\w+$/.test(data)) return false;
    if (view.composing || view.state.selection.main.empty) return false;
    view.dispatch(
      view.state.update(view.state.replaceSelection(data), {
        userEvent: "input.type",
        scrollIntoView: true,
      }),
    );
    event.preventDefault();
    return true;
  },
});

/** Tables and columns with what the code says about them. */
function dialect(schema: TableSchema[]) {
  const tables: Record<string, SQLNamespace> = {};
  for (const table of schema) {
    const self: Completion = { label: table.name, type: "type", detail: "table", info: table.doc };
    const children = table.columns.map((it): Completion => ({
      label: it.name,
      type: "property",
      detail: it.kind,
      info: it.doc,
      // Columns before keywords: those one has to look up.
      boost: 1,
    }));
    tables[table.name] = { self, children };
  }
  return sql({ dialect: SQLite, schema: tables });
}

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword], color: "var(--accent)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--bad)" },
  { tag: [tags.lineComment, tags.blockComment], color: "var(--faint)", fontStyle: "italic" },
]);

const looks = EditorView.theme({
  "&": {
    height: "100%",
    color: "var(--text)",
    backgroundColor: "var(--ground)",
    fontSize: "13px",
  },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-1px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { padding: "8px 4px", caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-placeholder": { color: "var(--faint)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground":
    { background: "var(--accent-ground)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--raised)" },
  ".cm-tooltip": {
    backgroundColor: "var(--ground)",
    border: "1px solid var(--strong-line)",
    color: "var(--text)",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "16em" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    backgroundColor: "var(--accent-ground)",
    color: "var(--text)",
  },
  ".cm-completionDetail": { color: "var(--faint)", fontStyle: "normal" },
  ".cm-completionInfo": { padding: "6px 8px", maxWidth: "36ch", fontFamily: "var(--font)" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "600" },
});
