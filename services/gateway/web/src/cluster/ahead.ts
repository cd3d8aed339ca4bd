// Who comes before an experiment in the queue.

import type { Job } from "$gen/resolute/api/experiments/v1/job_pb.js";

/** The jobs before one of them that hold slots or want some, in the order in which they are served. */
export function jobsAhead(jobs: readonly Job[], experimentNumber: bigint): readonly Job[] {
  const at = jobs.findIndex((one) => one.experimentNumber === experimentNumber);
  return jobs.slice(0, Math.max(at, 0)).filter(({ heldSlots, queuedTrials }) => heldSlots || queuedTrials);
}
