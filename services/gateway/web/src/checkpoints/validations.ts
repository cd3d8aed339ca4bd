// What the checkpoints of a list were worth when they were written.

import type { Checkpoint } from "$gen/resolute/api/checkpoints/v1/checkpoint_pb.js";
import type { Trial } from "$gen/resolute/api/experiments/v1/trial_pb.js";
import { services, within } from "$src/api/services";
import { checkpointsService } from "./services";

/** More trials than one list of checkpoints has of most searches; a call takes 500 series. */
const MOST_TRIALS = 200;
const MOST_POINTS = 1000;

/** Where a validation or a checkpoint is: a trial, and its steps. */
export const placeOf = (trialId: string | undefined, steps: bigint | undefined): string => `${trialId ?? ""} ${steps ?? ""}`;

/** Whether a checkpoint was written at the best validation of a trial. */
export const isBest = (checkpoint: Checkpoint, best: Trial | undefined): boolean =>
  !!best?.bestValidation && checkpoint.trialId === best.trialId && checkpoint.stepsCompleted === best.bestValidation.steps;

/** The validation metric at the steps of some checkpoints, by {@link placeOf}; without those that have no validation. */
export async function validationsOf(checkpoints: readonly Checkpoint[], name: string, signal: AbortSignal): Promise<Map<string, number>> {
  const trialIds = [...new Set(checkpoints.flatMap(({ trialId }) => trialId ?? []))].slice(0, MOST_TRIALS);
  const values = new Map<string, number>();
  if (!name || !trialIds.length) return values;
  const request = { series: trialIds.map((trialId) => ({ trialId, group: "validation", name })), maxPoints: MOST_POINTS };
  let [pageToken, place] = ["", 0];
  do {
    const page = await services.metrics.listSeries({ ...request, pageToken }, within(signal));
    for (const { steps, values: found } of page.series) {
      const trialId = trialIds[place];
      steps.forEach((step, at) => values.set(placeOf(trialId, step), found[at] ?? NaN));
      place += 1;
    }
    pageToken = page.nextPageToken;
  } while (pageToken);
  return values;
}

/** The checkpoint of the best validation of a trial; nothing where none was written there, or it is gone. */
export async function bestCheckpoint(trial: Trial, signal: AbortSignal): Promise<string | undefined> {
  const page = await checkpointsService.listCheckpoints({ trialIds: [trial.trialId], pageSize: 1000 }, within(signal));
  return page.checkpoints.find((one) => isBest(one, trial))?.checkpointId;
}
