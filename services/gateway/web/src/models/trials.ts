// Which trials versions of models come from.

import type { ModelVersion } from "$gen/resolute/api/checkpoints/v1/model_pb.js";
import { groupBy } from "$src/api/grouping";
import { services, within } from "$src/api/services";

/** Numbers of trials by UUID; those that are gone, or not for this person to see, are left out. */
export async function numbersOf(versions: readonly ModelVersion[], signal: AbortSignal): Promise<ReadonlyMap<string, bigint>> {
  const checkpoints = versions.flatMap(({ checkpoint }) => (checkpoint?.trialId && checkpoint.experimentId ? [checkpoint] : []));
  const found = new Map<string, bigint>();
  for (const [experimentId, members] of groupBy(checkpoints, (one) => one.experimentId ?? "")) {
    const key = { case: "experimentId", value: experimentId } as const;
    const trialIds = [...new Set(members.flatMap((one) => one.trialId ?? []))];
    try {
      const page = await services.trials.listTrialNumbers({ experiment: { key }, trialIds }, within(signal));
      page.trialIds.forEach((id, at) => found.set(id, page.numbers[at] ?? 0n));
    } catch {
      if (signal.aborted) break;
    }
  }
  return found;
}
