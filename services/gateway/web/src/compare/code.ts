// Which files of two model definitions differ, and how.

import { diffLines } from "diff";
import { textOf, type Files } from "$src/api/archive";

export interface DiffLine {
  readonly kind: "same" | "removed" | "added";
  readonly text: string;
}

export interface FileDiff {
  readonly path: string;
  /** What became of the file. */
  readonly change: "changed" | "added" | "removed";
  /** Its lines; nothing for files that are no text, and for those that are too different to be compared in time. */
  readonly lines: readonly DiffLine[] | undefined;
}

const MOST_MS = 1000;
/** Lines around a change that are shown. */
const AROUND = 3;

/** Compares the files of two model definitions, by path; equal ones are left out. */
export function codeDiff(before: Files, after: Files): FileDiff[] {
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort();
  return paths.flatMap((path): FileDiff[] => {
    const [old, now] = [before.get(path), after.get(path)];
    if (old && now && isEqual(old, now)) return [];
    const [oldText, nowText] = [old ? textOf(old) : "", now ? textOf(now) : ""];
    const isText = oldText !== undefined && nowText !== undefined;
    return [{ path, change: !old ? "added" : !now ? "removed" : "changed", lines: isText ? lineDiff(oldText, nowText) : undefined }];
  });
}

const isEqual = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && a.every((byte, at) => byte === b[at]);

function lineDiff(before: string, after: string): DiffLine[] | undefined {
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
