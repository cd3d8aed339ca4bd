// Which lines of two texts differ.

import { diffLines } from "diff";

export interface DiffLine {
  readonly kind: "same" | "removed" | "added";
  readonly text: string;
}

const MOST_MS = 1000;
/** Lines around a change that are shown. */
const AROUND = 3;

/** The lines of two texts; nothing where they are too different to be compared in time. */
export function lineDiff(before: string, after: string): DiffLine[] | undefined {
  const changes = diffLines(before, after, { timeout: MOST_MS });
  return changes?.flatMap(({ added, removed, value }) => {
    const kind = added ? "added" : removed ? "removed" : "same";
    return value.replace(/\n$/, "").split("\n").map((text): DiffLine => ({ kind, text }));
  });
}

/** Stretches of lines around changes, each with the position at which it begins. */
export function hunks(lines: readonly DiffLine[]): { at: number; lines: readonly DiffLine[] }[] {
  const near = lines.map((_, at) => lines.slice(Math.max(0, at - AROUND), at + AROUND + 1).some(({ kind }) => kind !== "same"));
  const found: { at: number; lines: DiffLine[] }[] = [];
  lines.forEach((line, at) => {
    if (!near[at]) return;
    if (!near[at - 1]) found.push({ at, lines: [] });
    found.at(-1)?.lines.push(line);
  });
  return found;
}
