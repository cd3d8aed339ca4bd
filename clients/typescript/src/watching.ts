// Streams that are opened again when they break, as docs/clients.md says.

import { Code } from "@connectrpc/connect";
import type { Experiment } from "../gen/resolute/api/experiments/v1/experiment_pb.js";
import type { Line } from "../gen/resolute/api/logs/v1/line_pb.js";
import { failureOf, type Failure } from "./errors.js";
import { pause } from "./interceptors.js";
import type { Services } from "./services.js";

const SILENCE_MS = 60_000;

type Open<Response> = (signal: AbortSignal) => AsyncIterable<Response>;

/** Gives the states of an experiment, from the present one to the last. */
export async function* watchExperiment(
  services: Services,
  number: bigint,
  signal?: AbortSignal,
): AsyncGenerator<Experiment> {
  let afterRevision = 0n;
  let ended = false;
  const open = (inner: AbortSignal) =>
    services.experiments.watchExperiments(
      {
        experiments: [{ key: "it", experiment: { key: { case: "number", value: number } }, afterRevision }],
      },
      { signal: inner },
    );
  for await (const { change } of reopened(open, () => ended, signal)) {
    if (change.case !== "experimentChange" || !change.value.experiment) continue;
    afterRevision = change.value.experiment.revision;
    ended = change.value.experiment.endTime !== undefined;
    yield change.value.experiment;
  }
}

/** Gives the log of a trial, line by line, until it is complete. */
export async function* followLog(services: Services, trialId: string, signal?: AbortSignal): AsyncGenerator<Line> {
  let cursor = 0n;
  let ended = false;
  const open = (inner: AbortSignal) =>
    services.logs.followLines(
      { subscriptions: [{ key: "it", filter: { trialId }, afterLineId: cursor }] },
      { signal: inner },
    );
  for await (const { key, lines, cursor: reached, complete } of reopened(open, () => ended, signal)) {
    if (!key) continue;
    cursor = reached;
    ended = complete;
    yield* lines;
  }
}

/** Whether a connection broke. Behind a proxy that has other codes, and no reason. */
function isLost({ code, reason }: Failure): boolean {
  return code === Code.Unavailable || (!reason && (code === Code.Internal || code === Code.Unknown));
}

/** Opens a stream again when its connection breaks or it ends before its time, or when nothing has come for a minute. */
async function* reopened<Response>(
  open: Open<Response>,
  finished: () => boolean,
  signal?: AbortSignal,
): AsyncGenerator<Response> {
  for (let attempt = 1; ; attempt += 1) {
    const silence = new AbortController();
    const ended = signal ? AbortSignal.any([signal, silence.signal]) : silence.signal;
    const wake = () => setTimeout(() => silence.abort(), SILENCE_MS);
    let timer = wake();
    try {
      for await (const response of open(ended)) {
        clearTimeout(timer);
        attempt = 1;
        yield response;
        timer = wake();
      }
      if (finished()) return;
    } catch (error) {
      const lost = silence.signal.aborted || isLost(failureOf(error));
      if (!lost || signal?.aborted) throw error;
    } finally {
      clearTimeout(timer);
    }
    await pause(attempt, signal);
  }
}
