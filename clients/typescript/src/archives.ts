// Model definitions: the archive of a directory of code.

import { createTarGzip } from "nanotar";

/** A file of a model definition. */
export interface SourceFile {
  /** Path within the directory, parts joined by "/". */
  readonly path: string;
  readonly data: Uint8Array;
  readonly executable?: boolean;
}

/** Packs files as `CreateExperiment` takes them. The same files give the same bytes. */
export async function packFiles(files: Iterable<SourceFile>): Promise<Uint8Array> {
  const entries = [...files].map(({ path, data, executable }) => ({
    name: path,
    data,
    attrs: { mode: executable ? "755" : "644", mtime: 0, uid: 0, gid: 0 },
  }));
  return createTarGzip(entries);
}
