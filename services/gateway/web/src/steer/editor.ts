// CodeMirror, as configs are edited in it.

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { Violation } from "$client/errors.js";
import { placeOf, type Place } from "./yaml";

const COLORS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
  { tag: [tags.string, tags.content], color: "var(--text)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--done)" },
  { tag: tags.comment, color: "var(--dim)", fontStyle: "italic" },
  { tag: [tags.meta, tags.labelName, tags.typeName], color: "var(--paused)" },
]);

const LOOK = EditorView.theme({
  "&": { height: "min(360px, 40vh)", border: "1px solid var(--line)", borderRadius: "4px", fontSize: "12px" },
  "&.cm-focused": { outline: "2px solid var(--accent)" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "18px" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { background: "var(--raised)", color: "var(--dim)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { background: "var(--raised)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    background: "var(--accent-ground)",
  },
  ".cm-tooltip": { background: "var(--ground)", color: "var(--text)", border: "1px solid var(--line)" },
  // In the place of pictures within styles, which the page's policy does not load.
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--failed)" },
  ".cm-lint-marker-error": { content: "normal", borderRadius: "50%", background: "var(--failed)" },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--failed)" },
});

/** An editor of a config. */
export interface ConfigEditor {
  /** Marks the faults at their lines, in the place of those that were marked. */
  mark: (faults: readonly Violation[]) => void;
  /** Puts the cursor on a place, and shows it. */
  select: (place: Place) => void;
  close: () => void;
}

/**
 * Puts an editor into an element.
 *
 * It is in a tree of its own, where its styles are sheets that scripts make: the page's policy allows none within the document.
 *
 * @param name What it is called for those who do not see it.
 * @param onchange Told of the whole text after each change.
 */
export function configEditor(parent: HTMLElement, { name, text }: { name: string; text: string }, onchange: (text: string) => void): ConfigEditor {
  const root = parent.attachShadow({ mode: "open" });
  const changes = EditorView.updateListener.of(({ docChanged, state }) => {
    if (docChanged) onchange(state.doc.toString());
  });
  const label = EditorView.contentAttributes.of({ tabindex: "0", "aria-label": name, "aria-multiline": "true" });
  const extensions: Extension = [
    [lineNumbers(), lintGutter(), history(), drawSelection(), highlightActiveLine(), EditorView.lineWrapping],
    [yaml(), syntaxHighlighting(COLORS), LOOK, label, changes, keymap.of([...defaultKeymap, ...historyKeymap])],
  ];
  const view = new EditorView({ root, parent: root, state: EditorState.create({ doc: text, extensions }) });
  return {
    mark: (faults) => view.dispatch(setDiagnostics(view.state, diagnostics(view.state.doc.toString(), faults))),
    select: ({ from, to }) => {
      view.dispatch({ selection: { anchor: from, head: to }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
      view.focus();
    },
    close: () => view.destroy(),
  };
}

const diagnostics = (text: string, faults: readonly Violation[]) =>
  faults.flatMap(({ field, description }) => {
    const place = placeOf(text, field);
    return place ? [{ ...place, severity: "error" as const, message: `${field}: ${description}` }] : [];
  });
