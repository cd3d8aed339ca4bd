// What a view wants to hear of, and where it goes on after a break.

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Experiment } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import type { Job } from "$gen/resolute/api/experiments/v1/job_pb.js";
import type { Trial } from "$gen/resolute/api/experiments/v1/trial_pb.js";
import type { WatchRequestSchema, WatchResponse } from "$gen/resolute/api/gateway/v1/gateway_service_pb.js";
import { Part } from "$gen/resolute/api/gateway/v1/gateway_service_pb.js";
import type { Line } from "$gen/resolute/api/logs/v1/line_pb.js";
import type { LineFilterSchema } from "$gen/resolute/api/logs/v1/line_pb.js";
import type { WatchSeriesResponse } from "$gen/resolute/api/metrics/v1/metrics_service_pb.js";
import type { SearchStatus } from "$gen/resolute/api/searcher/v1/search_pb.js";

/** What one tab asks for. */
export type Request = Pick<MessageInitShape<typeof WatchRequestSchema>, "experiments" | "searches" | "series" | "lines">;
/** Something that a view wants to hear of. */
export interface Subscription {
  readonly part: Part;
  /** Whether nothing more can come. */
  ended: boolean;
  /** Adds itself to a request, from where it stands. */
  join(request: MergedRequest, key: string): void;
  /** Takes a response that bears its key. */
  take(event: WatchResponse["event"]): void;
  /** Told why its part broke off for good. */
  fail?(message: string): void;
}

/** A request under construction: the lists of each part. */
export interface MergedRequest {
  experiments: { key: string; experiment: { key: { case: "number"; value: bigint } }; afterRevision: bigint; includeTrials: boolean }[];
  queue: { key: string; maxJobs: number } | undefined;
  searches: { key: string; searchId: string }[];
  series: { key: string; trialId: string; group: string; name: string; maxPoints: number }[];
  lines: { key: string; filter: MessageInitShape<typeof LineFilterSchema>; afterLineId: bigint }[];
}

/** An experiment, and its trials where they are wanted; from a revision that was seen already. */
export function experimentSubscription(
  { number, revision = 0n, trials = false }: { number: bigint; revision?: bigint; trials?: boolean },
  listener: (experiment: Experiment | undefined, trials: readonly Trial[]) => void,
): Subscription {
  let seen = revision;
  return {
    part: Part.EXPERIMENTS,
    ended: false,
    join(request, key) {
      const experiment = { key: { case: "number", value: number } } as const;
      request.experiments.push({ key, experiment, afterRevision: seen, includeTrials: trials });
    },
    take(event) {
      if (event.case !== "experiments" || event.value.change.case !== "experimentChange") return;
      const { experiment, trials: changed } = event.value.change.value;
      if (experiment) seen = experiment.revision;
      listener(experiment, changed);
    },
  };
}

/** The first jobs of the queue. */
export function queueSubscription(listener: (jobs: readonly Job[], total: bigint) => void): Subscription {
  return {
    part: Part.EXPERIMENTS,
    ended: false,
    join: (request, key) => (request.queue = { key, maxJobs: 100 }),
    take(event) {
      if (event.case !== "experiments" || event.value.change.case !== "queueChange") return;
      listener(event.value.change.value.jobs, event.value.change.value.totalJobs);
    },
  };
}

/** How far a search is. */
export function searchSubscription(searchId: string, listener: (status: SearchStatus) => void): Subscription {
  return {
    part: Part.SEARCHES,
    ended: false,
    join: (request, key) => request.searches.push({ key, searchId }),
    take(event) {
      if (event.case === "searches" && event.value.update.case === "status") listener(event.value.update.value);
    },
  };
}

/** A series, downsampled. */
export function seriesSubscription(
  series: { trialId: string; group: string; name: string; maxPoints: number },
  listener: (points: WatchSeriesResponse) => void,
): Subscription {
  return {
    part: Part.SERIES,
    ended: false,
    join: (request, key) => request.series.push({ key, ...series }),
    take(event) {
      if (event.case === "series") listener(event.value);
    },
  };
}

/** A log, from a line on. */
export function linesSubscription(
  filter: MessageInitShape<typeof LineFilterSchema>,
  afterLineId: bigint,
  listener: (lines: readonly Line[], complete: boolean) => void,
): Subscription {
  let cursor = afterLineId;
  const subscription: Subscription = {
    part: Part.LINES,
    ended: false,
    join: (request, key) => request.lines.push({ key, filter, afterLineId: cursor }),
    take(event) {
      if (event.case !== "lines") return;
      cursor = event.value.cursor;
      subscription.ended = event.value.complete;
      listener(event.value.lines, event.value.complete);
    },
  };
  return subscription;
}
