// Runs of a trial, and what each spent its time on, as bars on one axis of time.

import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Run } from "$gen/resolute/api/experiments/v1/run_pb.js";
import type { TrialTransition } from "$gen/resolute/api/experiments/v1/trial_transition_pb.js";

export interface Bar {
  readonly run: Run;
  /** Shares of the axis, from 0 to 1. */
  readonly from: number;
  readonly to: number;
}

export type PhaseName = "queue" | "start" | "imports" | "train" | "preemption";

export interface Phase {
  readonly run: number;
  readonly name: PhaseName;
  /** Milliseconds. */
  readonly begin: number;
  readonly end: number;
}

/** Bars of runs from a moment to another, in milliseconds; a run that goes on reaches the end. */
export function barsOf(runs: readonly Run[], begin: number, end: number): Bar[] {
  return runs.flatMap((run) => {
    if (!run.startTime) return [];
    const to = run.endTime ? timestampMs(run.endTime) : end;
    return [{ run, ...sharesOf(timestampMs(run.startTime), to, begin, end) }];
  });
}

/** The part of an axis that a time takes. */
export function sharesOf(from: number, to: number, begin: number, end: number): { from: number; to: number } {
  const span = Math.max(1, end - begin);
  const share = (time: number) => Math.min(1, Math.max(0, (time - begin) / span));
  return { from: share(from), to: share(to) };
}

/** What runs spent their time on, as `resolute trace` has it; what is not recorded is left out. */
export function phasesOf(runs: readonly Run[], transitions: readonly TrialTransition[], now: number): Phase[] {
  return runs.flatMap((run) => {
    if (!run.startTime) return [];
    const start = timestampMs(run.startTime);
    const end = run.endTime ? timestampMs(run.endTime) : now;
    const times = transitions.flatMap((one) => (one.time ? [{ one, at: timestampMs(one.time) }] : []));
    const earlier = times.filter(({ one, at }) => one.run < run.run && at <= start).map(({ at }) => at);
    const running = times.find(({ one }) => one.run === run.run && one.event === "CONFIRM_RUNNING")?.at;
    const signals = times.filter(({ one }) => one.run === run.run && one.signalReason).map(({ at }) => at);
    const signal = signals.length ? Math.min(...signals) : undefined;
    const stopped = signal ?? end;
    const ready = run.initializeTime && running !== undefined ? Math.max(running, timestampMs(run.initializeTime)) : running;
    const phase = (name: PhaseName, from: number | undefined, to: number | undefined): Phase[] =>
      from === undefined || to === undefined || to < from ? [] : [{ run: run.run, name, begin: from, end: to }];
    return [
      ...phase("queue", earlier.length ? Math.max(...earlier) : undefined, start),
      ...phase("start", start, running ?? end),
      ...(run.initializeTime ? phase("imports", running, ready) : []),
      ...phase("train", ready, stopped),
      ...phase("preemption", signal, end),
    ];
  });
}
