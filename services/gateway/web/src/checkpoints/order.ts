// The order of the checkpoints of a list, and those that match what somebody types.

import type { Checkpoint } from "$gen/resolute/api/checkpoints/v1/checkpoint_pb.js";

/** What they are sorted by: the metric and the trial are of other services, so this is done here. */
export interface Sorted {
  /** Such as "size desc". */
  readonly by: string;
  readonly metric: (one: Checkpoint) => number | undefined;
  readonly trial: (one: Checkpoint) => bigint | undefined;
}

/** Those that match, in an order; the newest first without one. What has no value comes last. */
export function ordered(all: readonly Checkpoint[], text: string, { by, metric, trial }: Sorted): readonly Checkpoint[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const matching = words.length ? all.filter((one) => words.every((word) => textOf(one, trial(one)).includes(word))) : all;
  const [field = "", direction] = by.split(" ");
  const values: Readonly<Record<string, (one: Checkpoint) => number | undefined>> = {
    trial: (one) => numberOf(trial(one)),
    steps: (one) => numberOf(one.stepsCompleted),
    metric,
    run: (one) => one.run,
    size: (one) => numberOf(one.totalSize),
    written: (one) => numberOf(one.commitTime?.seconds),
  };
  const valueOf = values[field];
  if (!valueOf) return matching;
  const sign = direction === "desc" ? -1 : 1;
  const known = (one: Checkpoint): number | undefined => {
    const value = valueOf(one);
    return value === undefined || Number.isNaN(value) ? undefined : value;
  };
  return [...matching].sort((a, b) => {
    const [x, y] = [known(a), known(b)];
    return x === undefined || y === undefined ? Number(x === undefined) - Number(y === undefined) : sign * (x - y);
  });
}

const numberOf = (value: bigint | undefined): number | undefined => (value === undefined ? undefined : Number(value));

const textOf = (one: Checkpoint, trial: bigint | undefined): string =>
  [one.checkpointId, trial === undefined ? "" : `trial ${trial}`, `step ${one.stepsCompleted ?? ""}`, ...one.keepReasons, one.pinned ? "pinned" : ""]
    .join(" ")
    .replaceAll("_", " ")
    .toLowerCase();
