// States in words, each with a colour and a shape.

import { ExperimentActivity, ExperimentKind, ExperimentState } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import type { Experiment } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import { RunOutcome } from "$gen/resolute/api/experiments/v1/run_pb.js";
import { type Trial, TrialState } from "$gen/resolute/api/experiments/v1/trial_pb.js";

export type Tone = "running" | "waiting" | "done" | "failed" | "paused";
export interface Shown {
  readonly word: string;
  readonly tone: Tone;
}

const shown = (word: string, tone: Tone): Shown => ({ word, tone });
const UNKNOWN = shown("unknown", "waiting");

/** Of a trial that runs and of which nothing moves. */
export const STUCK = shown("stands still", "paused");

const EXPERIMENT: Readonly<Record<number, Shown>> = {
  [ExperimentState.ACTIVE]: shown("active", "running"),
  [ExperimentState.PAUSED]: shown("paused", "paused"),
  [ExperimentState.STOPPING_COMPLETED]: shown("ending", "running"),
  [ExperimentState.STOPPING_CANCELED]: shown("canceling", "waiting"),
  [ExperimentState.STOPPING_KILLED]: shown("being killed", "waiting"),
  [ExperimentState.STOPPING_ERROR]: shown("failing", "failed"),
  [ExperimentState.COMPLETED]: shown("completed", "done"),
  [ExperimentState.CANCELED]: shown("canceled", "waiting"),
  [ExperimentState.ERROR]: shown("failed", "failed"),
  [ExperimentState.DELETING]: shown("being deleted", "waiting"),
  [ExperimentState.DELETED]: shown("deleted", "waiting"),
  [ExperimentState.DELETE_FAILED]: shown("deletion failed", "failed"),
};
const KILLED = shown("killed", "waiting");
const ACTIVITY: Readonly<Record<number, Shown>> = {
  [ExperimentActivity.QUEUED]: shown("queued", "waiting"),
  [ExperimentActivity.STARTING]: shown("starting", "running"),
  [ExperimentActivity.RUNNING]: shown("running", "running"),
  [ExperimentActivity.STOPPING]: shown("stopping", "waiting"),
  [ExperimentActivity.PAUSING]: shown("pausing", "paused"),
};
const TRIAL: Readonly<Record<number, Shown>> = {
  [TrialState.QUEUED]: shown("queued", "waiting"),
  [TrialState.STARTING]: shown("starting", "running"),
  [TrialState.RUNNING]: shown("running", "running"),
  [TrialState.STOPPING]: shown("stopping", "waiting"),
  [TrialState.PAUSED]: shown("paused", "paused"),
  [TrialState.WAITING]: shown("waiting", "waiting"),
  [TrialState.COMPLETED]: shown("completed", "done"),
  [TrialState.CANCELED]: shown("canceled", "waiting"),
  [TrialState.ERROR]: shown("failed", "failed"),
};
const OUTCOME: Readonly<Record<number, Shown>> = {
  [RunOutcome.UNSPECIFIED]: shown("running", "running"),
  [RunOutcome.COMPLETED]: shown("completed", "done"),
  [RunOutcome.PREEMPTED]: shown("preempted", "paused"),
  [RunOutcome.FAILED]: shown("failed", "failed"),
  [RunOutcome.LOST]: shown("lost", "failed"),
  [RunOutcome.KILLED]: KILLED,
  [RunOutcome.INVALID_HP]: shown("refused its hyperparameters", "failed"),
};

/** What an experiment does: its activity where there is one. */
export const experimentShown = ({ state, activity, killed }: Pick<Experiment, "state"> & Partial<Pick<Experiment, "activity" | "killed">>): Shown =>
  (killed ? KILLED : (ACTIVITY[activity ?? 0] ?? EXPERIMENT[state])) ?? UNKNOWN;
export const trialShown = ({ state, killed }: Pick<Trial, "state"> & Partial<Pick<Trial, "killed">>): Shown => (killed ? KILLED : TRIAL[state]) ?? UNKNOWN;
export const outcomeShown = (outcome: RunOutcome): Shown => OUTCOME[outcome] ?? UNKNOWN;

export const canPause = ({ state }: Experiment): boolean => state === ExperimentState.ACTIVE;
export const canActivate = ({ state }: Experiment): boolean => state === ExperimentState.PAUSED;
export const canEnd = ({ state }: Experiment): boolean =>
  state === ExperimentState.ACTIVE || state === ExperimentState.PAUSED || state === ExperimentState.STOPPING_CANCELED;
export const hasEnded = ({ state }: Experiment): boolean =>
  [ExperimentState.COMPLETED, ExperimentState.CANCELED, ExperimentState.ERROR].includes(state);
export const canDelete = (experiment: Experiment): boolean =>
  hasEnded(experiment) || experiment.state === ExperimentState.DELETE_FAILED;

/** Kinds of experiments that are tasks. */
export const TASK_KINDS: readonly ExperimentKind[] = [ExperimentKind.COMMAND, ExperimentKind.TENSORBOARD];
export const isTask = ({ kind }: { readonly kind: ExperimentKind }): boolean => TASK_KINDS.includes(kind);

/** The words by which a filter names states. */
export const STATE_WORDS: readonly string[] = ["running", "active", "paused", "stopping", "completed", "canceled", "killed", "failed"];
