// What only Node can do: gRPC, and directories.

import { readdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { packFiles, type SourceFile } from "./archives.js";
import { interceptorsOf, type ConnectionOptions } from "./connection.js";
import { servicesOver, type Services } from "./services.js";

export * from "./index.js";

const PING_MS = 20_000;

export interface GrpcOptions extends Omit<ConnectionOptions, "url"> {
  /** Where gRPC is served: `http://127.0.0.1:8080`, or `https://` for TLS. */
  readonly url: string;
  /** PEM of the authority that signed the server's certificate, where the system does not know it. */
  readonly certificateAuthority?: string;
}

/** Connects to a cluster by gRPC, which also takes calls that stream their request. */
export function connectGrpc(options: GrpcOptions): Services {
  return servicesOver(
    createGrpcTransport({
      baseUrl: options.url,
      pingIntervalMs: PING_MS,
      interceptors: interceptorsOf(options),
      ...(options.certificateAuthority ? { nodeOptions: { ca: options.certificateAuthority } } : {}),
    }),
  );
}

/** Packs a directory as `CreateExperiment` takes it. */
export async function packDirectory(directory: string): Promise<Uint8Array> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const names = entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(directory, path.join(entry.parentPath, entry.name)))
    .sort();
  return packFiles(await Promise.all(names.map((name) => sourceFile(directory, name))));
}

async function sourceFile(directory: string, name: string): Promise<SourceFile> {
  const file = path.join(directory, name);
  const [data, status] = await Promise.all([readFile(file), stat(file)]);
  return { path: name.split(path.sep).join("/"), data, executable: (status.mode & 0o100) !== 0 };
}
