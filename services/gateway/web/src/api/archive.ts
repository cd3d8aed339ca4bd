// Files of a model definition: a gzipped tar archive, unpacked in the browser.

import { parseTarGzip } from "nanotar";

export type Files = ReadonlyMap<string, Uint8Array>;

/** Larger files, and files that are no text, are not shown. */
const MOST_BYTES = 1_000_000;

/** The files of an archive by their paths. */
export async function unpack(archive: Uint8Array): Promise<Files> {
  if (!archive.length) return new Map();
  const entries = await parseTarGzip(archive);
  return new Map(entries.filter(({ type }) => type === "file").map(({ name, data }) => [name.replace(/^\.\//, ""), data ?? new Uint8Array()]));
}

/** The text of a file; nothing for one that is no text, or too large. */
export function textOf(content: Uint8Array): string | undefined {
  if (content.length > MOST_BYTES || content.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch {
    return undefined;
  }
}
