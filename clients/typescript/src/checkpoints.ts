// Files of checkpoints, read through the service and compared with their digests.

import { blake3 } from "@noble/hashes/blake3.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import type { File } from "../gen/resolute/api/checkpoints/v1/checkpoint_pb.js";
import type { Services } from "./services.js";

const HASHES = { blake3, sha256 } as const;

/** Lists all files and directories of a checkpoint. */
export async function* listFiles(services: Services, checkpointId: string): AsyncGenerator<File> {
  let pageToken = "";
  do {
    const page = await services.checkpoints.listFiles({ checkpointId, pageToken });
    yield* page.files;
    pageToken = page.nextPageToken;
  } while (pageToken);
}

/**
 * Reads a file of a checkpoint whose storage the services can reach. For buckets take `presignDownloads`.
 *
 * @throws Error when the bytes do not match the digest.
 */
export async function readFile(services: Services, checkpointId: string, file: File): Promise<Uint8Array> {
  const content = new Uint8Array(Number(file.size));
  let end = 0;
  for await (const { data } of services.checkpoints.readFile({ checkpointId, path: file.path })) {
    if (end + data.length > content.length) throw new Error(`${file.path} is longer than its ${file.size} bytes`);
    content.set(data, end);
    end += data.length;
  }
  if (end !== content.length) throw new Error(`${file.path} has ${end} of its ${file.size} bytes`);
  if (file.digest && digestLike(file.digest, content) !== file.digest) {
    throw new Error(`${file.path} does not match its digest ${file.digest}; download it again`);
  }
  return content;
}

function digestLike(digest: string, content: Uint8Array): string {
  const algorithm = digest.slice(0, digest.indexOf(":"));
  const hash = Object.entries(HASHES).find(([name]) => name === algorithm)?.[1];
  if (!hash) throw new Error(`digests of the kind ${algorithm} are unknown here; upgrade this client`);
  return `${algorithm}:${bytesToHex(hash(content))}`;
}
