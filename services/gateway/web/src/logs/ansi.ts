// Lines as terminals show them: colours by escape sequences, and progress bars that return the carriage.

/** A stretch of text of one look. */
export interface Span {
  readonly text: string;
  /** Classes, such as "bold red"; empty for plain text. */
  readonly look: string;
}

const COLORS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
// Escape sequences: of colours, other ones that control the cursor, and titles of windows.
// eslint-disable-next-line no-control-regex
const SEQUENCE = /\u001b\[([0-9;:]*)m|\u001b\[[0-9;?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[@-Z\\-_]/g;

/** What is left on a line after its carriage returns: the last thing written. */
export function afterReturns(text: string): string {
  const parts = text.split("\r").filter(Boolean);
  return parts.at(-1) ?? "";
}

/** Splits a line into stretches of one look. Sequences that are not of colours are left out. */
export function spans(message: string): Span[] {
  const text = afterReturns(message);
  if (!text.includes("\u001b")) return [{ text, look: "" }];
  const found: Span[] = [];
  let look = { bold: false, color: "" };
  let end = 0;
  const add = (part: string) => {
    if (part) found.push({ text: part, look: [look.bold ? "bold" : "", look.color].filter(Boolean).join(" ") });
  };
  for (const match of text.matchAll(SEQUENCE)) {
    add(text.slice(end, match.index));
    end = match.index + match[0].length;
    if (match[1] !== undefined) look = changed(look, match[1]);
  }
  add(text.slice(end));
  return found;
}

function changed(look: { bold: boolean; color: string }, codes: string): { bold: boolean; color: string } {
  const next = { ...look };
  const numbers = codes.split(/[;:]/).map(Number);
  for (let at = 0; at < numbers.length; at += 1) {
    const code = numbers[at] ?? 0;
    if (code === 0) Object.assign(next, { bold: false, color: "" });
    else if (code === 1) next.bold = true;
    else if (code === 22) next.bold = false;
    else if (code === 39) next.color = "";
    else if (code >= 30 && code <= 37) next.color = COLORS[code - 30] ?? "";
    else if (code >= 90 && code <= 97) next.color = COLORS[code - 90] ?? "";
    else if (code === 38 || code === 48) at += numbers[at + 1] === 5 ? 2 : 4; // exact colours may be unreadable here
  }
  return next;
}
