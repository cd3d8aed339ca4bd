// Code that is uploaded from a browser: a gzipped tar archive, packed here.

import { createTarGzip } from "nanotar";
import { bytes } from "$src/ui/format";

/** What one message takes; the command line sends more, in pieces. */
const MOST_PACKED = 2 << 20;
/** More is not read at all: it would hardly be so small, packed. */
const MOST_READ = 64 << 20;
const MOST_FILES = 10_000;
/** What a name has in a tar archive as it is written here. */
const MOST_NAME_BYTES = 100;
const READ_AT = 315_532_800_000; // 1980: equal files make equal archives

/** What the command line leaves out as well. */
const LEFT_OUT = /(^|\/)(__pycache__|\.git|\.vscode|\.idea|\.mypy_cache)\/|\.py[co]$|^(terraform[^/]*|shared_fs|downloads)\/|^\.detignore$/;
const ARCHIVE = /\.(tar\.gz|tgz)$/i;
const CONFIG = /^(config|experiment)\.ya?ml$/;

export interface Code {
  readonly archive: Uint8Array;
  /** What it is, for people. */
  readonly says: string;
  /** What in it is not as somebody may expect; empty for nothing. */
  readonly warning: string;
  /** The config that lies beside the code; absent where none does. */
  readonly config?: string | undefined;
}

type Chosen = Pick<File, "name" | "size" | "webkitRelativePath" | "arrayBuffer" | "text">;

/** The path of a chosen file below the folder that was chosen. */
const pathOf = ({ name, webkitRelativePath }: Chosen): string => webkitRelativePath.split("/").slice(1).join("/") || name;

/**
 * Packs files that were chosen; one gzipped tar archive stays as it is.
 *
 * @throws Error That they are too large or too many, or that a name is too long, with what to do instead.
 */
export async function packed(chosen: readonly Chosen[]): Promise<Code> {
  const [only] = chosen;
  if (only && chosen.length === 1 && ARCHIVE.test(only.name)) {
    checkSize(only.size);
    return { archive: new Uint8Array(await only.arrayBuffer()), says: `${only.name}, ${bytes(BigInt(only.size))}`, warning: "" };
  }
  const files = chosen.map((file) => ({ file, path: pathOf(file) })).filter(({ path }) => !LEFT_OUT.test(path));
  files.sort((a, b) => (a.path < b.path ? -1 : 1));
  checkContent(files);
  const entries = await Promise.all(files.map(async ({ file, path }) => ({ name: path, data: new Uint8Array(await file.arrayBuffer()) })));
  const archive = await createTarGzip(entries, { attrs: { mtime: READ_AT } });
  checkSize(archive.length);
  const left = chosen.length - files.length;
  return {
    archive,
    says: `${files.length === 1 ? "1 file" : `${files.length} files`}, ${bytes(BigInt(archive.length))} packed${left ? `; ${left} left out, such as caches` : ""}`,
    warning: chosen.some((file) => pathOf(file) === ".detignore") ? "What .detignore names is in it all the same: only the command line heeds that file." : "",
    config: await files.find(({ path }) => CONFIG.test(path))?.file.text(),
  };
}

function checkContent(files: readonly { readonly file: Chosen; readonly path: string }[]): void {
  const size = files.reduce((sum, { file }) => sum + file.size, 0);
  if (!files.length) throw new Error("There are no files in it.");
  if (files.length > MOST_FILES) throw new Error(`These are ${files.length} files; at most ${MOST_FILES} are taken here. ${INSTEAD}`);
  if (size > MOST_READ) throw new Error(`These files have ${bytes(BigInt(size))}. ${INSTEAD}`);
  const long = files.find(({ path }) => new TextEncoder().encode(path).length > MOST_NAME_BYTES);
  if (long) throw new Error(`The name ${long.path} is longer than ${MOST_NAME_BYTES} bytes. ${INSTEAD}`);
}

function checkSize(size: number): void {
  if (size > MOST_PACKED) throw new Error(`This has ${bytes(BigInt(size))} packed; a browser sends at most ${bytes(BigInt(MOST_PACKED))}. ${INSTEAD}`);
}

const INSTEAD = "The command line sends it: resolute experiment create config.yaml DIR";
