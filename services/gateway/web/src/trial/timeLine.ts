// Runs of a trial as bars on one axis of time.

import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Run } from "$gen/resolute/api/experiments/v1/run_pb.js";

export interface Bar {
  readonly run: Run;
  /** Shares of the axis, from 0 to 1. */
  readonly from: number;
  readonly to: number;
}

/** Bars of runs from a moment to another, in milliseconds; a run that goes on reaches the end. */
export function barsOf(runs: readonly Run[], begin: number, end: number): Bar[] {
  const span = Math.max(1, end - begin);
  const share = (time: number) => Math.min(1, Math.max(0, (time - begin) / span));
  return runs.flatMap((run) => {
    if (!run.startTime) return [];
    const to = run.endTime ? timestampMs(run.endTime) : end;
    return [{ run, from: share(timestampMs(run.startTime)), to: share(to) }];
  });
}
