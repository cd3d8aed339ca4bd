// Which files of two model definitions differ, and how.

import { textOf, type Files } from "$src/api/archive";
import { lineDiff, type DiffLine } from "$src/ui/lineDiff";

export interface FileDiff {
  readonly path: string;
  /** What became of the file. */
  readonly change: "changed" | "added" | "removed";
  /** Its lines; nothing for files that are no text, and for those that are too different to be compared in time. */
  readonly lines: readonly DiffLine[] | undefined;
}

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
