// Files of checkpoints, from the service or from the bucket that has them.

import type { File } from "$gen/resolute/api/checkpoints/v1/checkpoint_pb.js";
import { saveAs, saveUrl } from "$src/api/saving";
import { checkpointsService } from "./services";

const MOST_BYTES = 2 * 1024 ** 3;

/**
 * Hands a file of a checkpoint to the browser's downloads.
 *
 * @throws Error when it is larger than a browser can hold, or incomplete.
 */
export async function download(checkpointId: string, file: File): Promise<void> {
  const { downloads } = await checkpointsService.presignDownloads({ checkpointId, paths: [file.path] });
  const url = downloads[0]?.url ?? "";
  if (url) saveUrl(url, nameOf(file));
  else await saveBytes(checkpointId, file);
}

async function saveBytes(checkpointId: string, file: File): Promise<void> {
  if (file.size > MOST_BYTES) throw new Error(`${file.path} is too large for a page; run: resolute checkpoint download ${checkpointId}`);
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for await (const { data } of checkpointsService.readFile({ checkpointId, path: file.path })) {
    parts.push(new Uint8Array(data));
    size += data.length;
  }
  if (BigInt(size) !== file.size) throw new Error(`${file.path} has ${size} of its ${file.size} bytes; try again`);
  saveAs(parts, nameOf(file));
}

/** Whether an entry of a checkpoint is a file, and no directory. */
export const isFile = ({ path }: Pick<File, "path">): boolean => !path.endsWith("/");

/** Where the whole of a checkpoint is, as a tar. */
export const archivePath = (checkpointId: string): string => `checkpoints/${checkpointId}.tar`;

const nameOf = ({ path }: File): string => path.slice(path.lastIndexOf("/") + 1);
