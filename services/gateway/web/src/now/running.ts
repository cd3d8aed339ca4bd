// What is said of a running experiment, beyond what the queue says: where it runs, and how its metric went.

import type { Slot } from "$gen/resolute/api/experiments/v1/cluster_service_pb.js";
import type { Trial } from "$gen/resolute/api/experiments/v1/trial_pb.js";

/** The nodes that trials are on, such as "node 0" or "node 3 of pool gpu"; empty where none is known. */
export function whereOf(trials: readonly Trial[], slots: readonly Slot[]): string {
  const numbers = new Set(trials.map(({ number }) => number));
  const several = new Set(slots.map(({ resourcePool }) => resourcePool)).size > 1;
  const held = slots.filter(({ holder }) => holder && numbers.has(holder.trialNumber));
  return [...new Set(held.map(({ node, resourcePool }) => `node ${node}${several ? ` of pool ${resourcePool}` : ""}`))].join(", ");
}

/** The points of a small line, in a box of some size. */
export function sparkPoints(values: readonly number[], width: number, height: number): string {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const span = most - least || 1;
  return values.map((value, at) => `${((at / Math.max(1, values.length - 1)) * width).toFixed(1)},${(height - ((value - least) / span) * height).toFixed(1)}`).join(" ");
}
