// What can be done to experiments, with the words that say so before it is done.

import type { Experiment } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import { services } from "$src/api/services";
import { canActivate, canEnd, canPause, hasEnded } from "$src/api/states";

export interface Action {
  readonly name: string;
  /** What it does to some experiments, such as "3 experiments". */
  readonly says: (what: string) => string;
  readonly danger?: boolean;
  /** What is said once it was done, and the name of the action that undoes it; absent where none does. */
  readonly undone?: { readonly did: string; readonly by: string };
  readonly applies: (experiment: Experiment) => boolean;
  readonly run: (number: bigint) => Promise<{ experiment?: Experiment | undefined }>;
}

const key = (number: bigint) => ({ experiment: { key: { case: "number", value: number } } }) as const;

export const ACTIONS: readonly Action[] = [
  {
    name: "Pause",
    says: (what) => `Running trials of ${what} write a checkpoint and exit. Activate lets them go on from there.`,
    undone: { did: "Paused", by: "Activate" },
    applies: canPause,
    run: (number) => services.experiments.pauseExperiment(key(number)),
  },
  {
    name: "Activate",
    says: (what) => `Trials of ${what} may run again, from their latest checkpoints.`,
    undone: { did: "Activated", by: "Pause" },
    applies: canActivate,
    run: (number) => services.experiments.activateExperiment(key(number)),
  },
  {
    name: "Cancel",
    says: (what) => `Running trials of ${what} write a checkpoint and exit, and the search ends. This cannot be undone.`,
    danger: true,
    applies: canEnd,
    run: (number) => services.experiments.cancelExperiment(key(number)),
  },
  {
    name: "Kill",
    says: (what) => `Running trials of ${what} are killed. What they did since their last checkpoint is lost. This cannot be undone.`,
    danger: true,
    applies: canEnd,
    run: (number) => services.experiments.killExperiment(key(number)),
  },
  {
    name: "Archive",
    says: (what) => `${what} will be hidden from the list. The filter archived:yes shows archived ones.`,
    undone: { did: "Archived", by: "Unarchive" },
    applies: (one) => hasEnded(one) && !one.archived,
    run: (number) => services.experiments.archiveExperiment({ ...key(number), archived: true }),
  },
  {
    name: "Unarchive",
    says: (what) => `${what} will be shown in the list again.`,
    undone: { did: "Unarchived", by: "Archive" },
    applies: (one) => one.archived,
    run: (number) => services.experiments.archiveExperiment({ ...key(number), archived: false }),
  },
];
