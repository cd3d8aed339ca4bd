// The services that the page calls, by the gateway that it came from, under the cookie of its session.

import type { DescService } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-web";
import { retryReads } from "$client/interceptors.js";
import { Memory } from "./memory";
import { AccessService } from "$gen/resolute/api/experiments/v1/access_service_pb.js";
import { ExperimentsService } from "$gen/resolute/api/experiments/v1/experiments_service_pb.js";
import { TrialsService } from "$gen/resolute/api/experiments/v1/trials_service_pb.js";
import { GatewayService } from "$gen/resolute/api/gateway/v1/gateway_service_pb.js";
import { LogsService } from "$gen/resolute/api/logs/v1/logs_service_pb.js";
import { MetricsService } from "$gen/resolute/api/metrics/v1/metrics_service_pb.js";
import { SearcherService } from "$gen/resolute/api/searcher/v1/searcher_service_pb.js";

const DEADLINE_MS = 60_000; // a search in a long log, or a link to another continent, takes its time
let signedOut = (): void => undefined;
let reached = (_isThere: boolean): void => undefined;
export const memory = new Memory();

/** Says who is told when a call is refused because nobody is signed in. */
export function onSignedOut(listener: () => void): void {
  signedOut = listener;
}

/** Says who is told with each call whether the cluster answers. */
export function onReach(listener: (isThere: boolean) => void): void {
  reached = listener;
}

/** Tells the listener where a call failed because nobody is signed in. */
export function noticeSignOut(error: unknown): void {
  if (ConnectError.from(error).code !== Code.Unauthenticated) return;
  memory.clear();
  signedOut();
}

const noticing: Interceptor = (next) => async (request) => {
  try {
    return await next(request);
  } catch (error) {
    noticeSignOut(error);
    throw error;
  }
};

/** Where a browser gets no answer at all it says so in words of its own, and with no code. */
const reaching: Interceptor = (next) => async (request) => {
  try {
    const answer = await next(request);
    reached(true);
    return answer;
  } catch (error) {
    const failed = error instanceof TypeError ? new ConnectError("the cluster does not answer", Code.Unavailable) : ConnectError.from(error);
    if (!request.signal.aborted) reached(failed.code !== Code.Unavailable);
    throw failed;
  }
};

// By gRPC-Web, whose refusals are answers to the browser as well: it writes an error into the console for each other status.
const transport = createGrpcWebTransport({
  baseUrl: new URL(".", document.baseURI).href.replace(/\/$/, ""),
  useBinaryFormat: true,
  interceptors: [noticing, memory.remember, reaching, retryReads],
});

/** The client of a service that only some views call; the code that they load has it. */
export const clientOf = <Service extends DescService>(service: Service): Client<Service> => createClient(service, transport);

export const services = {
  access: createClient(AccessService, transport),
  experiments: createClient(ExperimentsService, transport),
  gateway: createClient(GatewayService, transport),
  logs: createClient(LogsService, transport),
  metrics: createClient(MetricsService, transport),
  searcher: createClient(SearcherService, transport),
  trials: createClient(TrialsService, transport),
};

/** Options of a call with one answer, which ends with its view. */
export const within = (signal: AbortSignal) => ({ signal, timeoutMs: DEADLINE_MS });
