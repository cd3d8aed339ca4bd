// Reading a checkpoint from its store, to compare it with what was committed.

import { blake3 } from "@noble/hashes/blake3.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import type { File } from "$gen/resolute/api/checkpoints/v1/checkpoint_pb.js";
import { count } from "$src/ui/format";
import { failureOf } from "$client/errors.js";

/** A file that was read. */
export interface Checked {
  readonly path: string;
  /** What is wrong with it, as the end of a sentence; empty for nothing. */
  readonly fault: string;
  /** Whether there was a digest to compare with. */
  readonly compared: boolean;
}

export type ReadPieces = (path: string, signal: AbortSignal) => AsyncIterable<Uint8Array>;

// Browsers hash by themselves only on pages that came encrypted or from the same machine, and only whole files.
const HASHES: Readonly<Record<string, { create: () => { update: (data: Uint8Array) => unknown; digest: () => Uint8Array } }>> = { blake3, sha256 };

/**
 * Reads files one after the other, and yields each once it is read.
 *
 * @param read Gives the bytes of a file as they are stored now.
 * @param tell Told how many bytes of all files have been read.
 * @throws When the view ended.
 */
export async function* verified(
  files: readonly File[],
  read: ReadPieces,
  signal: AbortSignal,
  tell: (bytes: number) => void = () => undefined,
): AsyncGenerator<Checked> {
  let done = 0;
  for (const { path, size, digest } of files) {
    const [algorithm = "", expected] = digest.split(":");
    const hash = HASHES[algorithm]?.create();
    const begun = done;
    let fault = "";
    try {
      for await (const data of read(path, signal)) {
        hash?.update(data);
        tell((done += data.length));
      }
      if (BigInt(done - begun) !== size) fault = `has ${done - begun} bytes instead of ${size}`;
      else if (hash && bytesToHex(hash.digest()) !== expected) fault = "has another content than was committed";
    } catch (error) {
      signal.throwIfAborted();
      fault = `cannot be read: ${failureOf(error).message}`;
    }
    yield { path, fault, compared: !!hash };
  }
}

/** What came of it in one sentence. */
export function summary(checked: readonly Checked[]): string {
  const damaged = checked.filter(({ fault }) => fault).length;
  const unknown = checked.filter(({ compared }) => !compared).length;
  const files = count(checked.length, "file");
  const note = unknown ? `, ${unknown} of them compared by size only` : "";
  return damaged ? `${damaged} of ${files} damaged${note}` : `${files} sound${note}`;
}
