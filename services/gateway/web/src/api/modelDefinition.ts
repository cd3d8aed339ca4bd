import { services } from "./services";

/** Reads the model definition of an experiment: a gzipped tar archive, empty for none. */
export async function readModelDefinition(number: bigint, signal: AbortSignal): Promise<Uint8Array> {
  const experiment = { key: { case: "number", value: number } } as const;
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  for await (const { chunk } of services.experiments.getModelDefinition({ experiment }, { signal })) chunks.push(new Uint8Array(chunk));
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}
