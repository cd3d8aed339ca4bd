// Makes the calls that it reads, one JSON object a line, and prints how each ended. Tests compare that with what other
// clients get. RESOLUTE_URL is the gateway's, or with the argument `grpc` the URL of the gRPC port.

import { readdir } from "node:fs/promises";
import path from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { create, createRegistry, type DescFile, type DescMessage, type DescMethod, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { ConnectError, type Transport } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { createConnectTransport } from "@connectrpc/connect-web";

interface Call {
  readonly method: string;
  readonly token: string;
  readonly request: string;
}

const registry = createRegistry(...(await contract()));
const baseUrl = process.env["RESOLUTE_URL"] ?? "";
const transport: Transport =
  process.argv[2] === "grpc" ? createGrpcTransport({ baseUrl }) : createConnectTransport({ baseUrl, useBinaryFormat: true });

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await made(JSON.parse(line) as Call)));
}
process.exit(0);

async function made(call: Call): Promise<unknown> {
  const [, serviceName = "", methodName = ""] = call.method.split("/");
  const method = registry.getService(serviceName)?.methods.find((one) => one.name === methodName);
  if (!method) throw new Error(`no method ${call.method}`);
  const request = fromBinary(method.input, Buffer.from(call.request, "base64"));
  const headers: Record<string, string> = call.token ? { authorization: `Bearer ${call.token}` } : {};
  try {
    const message = await first(method, request as MessageInitShape<DescMessage>, headers);
    if (message === undefined) return { code: "ok", ended: true };
    return { code: "ok", answer: encoded(toBinary(method.output, create(method.output, message))) };
  } catch (error) {
    const failed = ConnectError.from(error);
    const details = failed.details.flatMap((one) =>
      "type" in one ? [{ type: one.type, value: encoded(one.value) }] : [],
    );
    return { code: codeToString(failed.code), message: failed.rawMessage, details };
  }
}

// The answer, or of a stream the first; undefined if it ends without one.
async function first(
  method: DescMethod, request: MessageInitShape<DescMessage>, headers: Record<string, string>,
): Promise<MessageInitShape<DescMessage> | undefined> {
  if (method.methodKind === "unary") {
    return (await transport.unary({ ...method, methodKind: "unary" }, undefined, undefined, headers, request)).message;
  }
  const stop = new AbortController();
  try {
    const requests = (async function* () { yield request; })();
    const { message } = await transport.stream(
      method as Parameters<Transport["stream"]>[0], stop.signal, undefined, headers, requests);
    for await (const one of message) return one;
    return undefined;
  } finally {
    stop.abort();
  }
}

function encoded(data: Uint8Array): string {
  return Buffer.from(data).toString("base64");
}

async function contract(): Promise<DescFile[]> {
  const root = path.join(import.meta.dirname, "../gen");
  const names = (await readdir(root, { recursive: true })).filter((name) => name.endsWith("_service_pb.js"));
  const modules = await Promise.all(names.map((name) => import(path.join(root, name)) as Promise<Record<string, unknown>>));
  return modules.flatMap((one) => Object.entries(one).flatMap(([name, it]) => (name.startsWith("file_") ? [it as DescFile] : [])));
}
