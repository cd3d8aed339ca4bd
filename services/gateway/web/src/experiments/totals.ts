// What the experiments that match have altogether.

import type { ExperimentTotals } from "$gen/resolute/api/experiments/v1/experiments_service_pb.js";
import { experimentShown } from "$src/api/states";
import { count } from "$src/ui/format";

/** Such as "3 experiments with 18 trials: 2 completed, 1 active". */
export function totalsText({ states, trials }: ExperimentTotals): string {
  const all = states.reduce((sum, one) => sum + Number(one.count), 0);
  const parts = states.toSorted((a, b) => Number(b.count - a.count)).map((one) => `${one.count} ${experimentShown(one).word}`);
  return `${count(all, "experiment")} with ${count(trials, "trial")}: ${parts.join(", ")}`;
}
