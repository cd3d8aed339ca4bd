// Lines as terminals show them: colours by escape sequences, and progress bars that return the carriage.

import { visible } from "$src/ui/visible";
import { exact, ofPalette } from "./colors";

/** A stretch of text of one look. */
export interface Span {
  readonly text: string;
  /** Classes, such as "bold red"; empty for plain text. */
  readonly look: string;
  /** A colour that is none of the terminal's own, as CSS has it. */
  readonly color?: string;
}

const COLORS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const STYLES: Readonly<Record<number, readonly [name: string, isOn: boolean]>> = {
  1: ["bold", true],
  2: ["faint", true],
  3: ["italic", true],
  4: ["underlined", true],
  23: ["italic", false],
  24: ["underlined", false],
};
// Escape sequences: of colours, other ones that control the cursor, and titles of windows.
// eslint-disable-next-line no-control-regex
const SEQUENCE = /\u001b\[([0-9;:]*)m|\u001b\[[0-9;?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[@-Z\\-_]/g;

interface Look {
  readonly styles: ReadonlySet<string>;
  readonly name: string;
  readonly color: string | undefined;
}

const PLAIN: Look = { styles: new Set(), name: "", color: undefined };

/** What is left on a line after its carriage returns: the last thing written. */
export function afterReturns(text: string): string {
  const parts = text.split("\r").filter(Boolean);
  return parts.at(-1) ?? "";
}

/** The text of a line that is shown. */
export function plain(message: string): string {
  return spans(message).map(({ text }) => text).join("");
}

/** Splits a line into stretches of one look. Sequences that are not of colours are left out. */
export function spans(message: string): Span[] {
  const text = afterReturns(message);
  if (!text.includes("\u001b")) return [{ text: shown(text), look: "" }];
  const found: Span[] = [];
  let look = PLAIN;
  let end = 0;
  const add = (part: string) => {
    const { styles, name, color } = look;
    if (part) found.push({ text: shown(part), look: [...styles, name].filter(Boolean).join(" "), ...(color ? { color } : {}) });
  };
  for (const match of text.matchAll(SEQUENCE)) {
    add(text.slice(end, match.index));
    end = match.index + match[0].length;
    if (match[1] !== undefined) look = changed(look, match[1]);
  }
  add(text.slice(end));
  return found;
}

/** What does not show, or turns text around, is written out; tabs stay. */
const shown = (text: string): string => text.split("\t").map(visible).join("\t");

function changed(look: Look, codes: string): Look {
  let next = look;
  const parts = codes.split(";");
  for (let at = 0; at < parts.length; at += 1) {
    const [code = 0, ...rest] = (parts[at] ?? "").split(":").map(Number);
    if (code !== 38 && code !== 48) {
      next = simple(next, code);
      continue;
    }
    // With colons an exact colour is one part, with semicolons several.
    const numbers = rest.length ? rest : parts.slice(at + 1, at + 5).map(Number);
    if (!rest.length) at += numbers[0] === 5 ? 2 : 4;
    if (code === 38) next = { ...next, ...exactly(numbers, rest.length > 4) };
  }
  return next;
}

/** The colour that follows 38: one of the palette, or red, green and blue, before which a colour space may stand. */
function exactly([kind, ...rest]: readonly number[], hasSpace: boolean): Pick<Look, "name" | "color"> {
  const [index = -1] = rest;
  if (kind === 5 && index >= 0 && index < 16) return { name: COLORS[index % 8] ?? "", color: undefined };
  return { name: "", color: kind === 5 ? ofPalette(index) : exact(rest.slice(hasSpace ? 1 : 0, hasSpace ? 4 : 3)) };
}

function simple(look: Look, code: number): Look {
  if (code === 0) return PLAIN;
  if (code === 39) return { ...look, name: "", color: undefined };
  if (code >= 30 && code <= 37) return { ...look, name: COLORS[code - 30] ?? "", color: undefined };
  if (code >= 90 && code <= 97) return { ...look, name: COLORS[code - 90] ?? "", color: undefined };
  const styles = new Set(look.styles);
  if (code === 22) for (const one of ["bold", "faint"]) styles.delete(one);
  const [style, isOn] = STYLES[code] ?? [];
  if (style && isOn) styles.add(style);
  else if (style) styles.delete(style);
  return { ...look, styles };
}
