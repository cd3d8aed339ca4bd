// The trials that are compared, each with its experiment and the environment of its latest run.

import type { Experiment } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import type { RunEnvironment } from "$gen/resolute/api/experiments/v1/run_environment_pb.js";
import type { Trial } from "$gen/resolute/api/experiments/v1/trial_pb.js";
import { failureOf } from "$client/errors.js";
import { readEnvironment } from "$src/api/environment";
import { services, within } from "$src/api/services";

export interface Subject {
  readonly trial: Trial;
  readonly experiment: Experiment;
  /** What was recorded of its latest run; nothing where no run has started. */
  readonly environment: RunEnvironment | undefined;
}

const byNumber = (number: bigint) => ({ key: { case: "number", value: number } }) as const;

export class Subjects {
  shown = $state.raw<readonly Subject[] | undefined>();
  problem = $state("");

  /** Loads trials, and the best trial of each experiment; returns what ends that. What cannot be read is said, and left out. */
  load(trials: readonly bigint[], experiments: readonly bigint[]): () => void {
    const ending = new AbortController();
    const { signal } = ending;
    const known = new Map<bigint, Promise<Experiment>>(); // configs may be large: each is read once
    const experimentOf = (number: bigint): Promise<Experiment> => {
      const reading = known.get(number) ?? readExperiment(number, signal);
      known.set(number, reading);
      return reading;
    };
    const wanted = [...trials.map((one) => readSubject(one, experimentOf, signal)), ...experiments.map((one) => bestOf(one, experimentOf, signal))];
    void Promise.allSettled(wanted).then((results) => {
      if (signal.aborted) return;
      const found = results.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
      this.shown = [...new Map(found.map((one) => [one.trial.number, one])).values()];
      this.problem = results.flatMap((one) => (one.status === "rejected" ? failureOf(one.reason).message : [])).join("; ");
    });
    return () => ending.abort();
  }
}

type ExperimentOf = (number: bigint) => Promise<Experiment>;

async function readExperiment(number: bigint, signal: AbortSignal): Promise<Experiment> {
  const { experiment } = await services.experiments.getExperiment({ experiment: byNumber(number) }, within(signal));
  if (!experiment) throw new Error(`experiment ${number} cannot be read`);
  return experiment;
}

async function readSubject(number: bigint, experimentOf: ExperimentOf, signal: AbortSignal): Promise<Subject> {
  const { trial } = await services.trials.getTrial({ trial: byNumber(number) }, within(signal));
  if (!trial) throw new Error(`trial ${number} cannot be read`);
  const [experiment, environment] = await Promise.all([experimentOf(trial.experimentNumber), readEnvironment(trial, signal)]);
  return { trial, experiment, environment };
}

/** The best trial of an experiment; its first one where none has validated. */
async function bestOf(number: bigint, experimentOf: ExperimentOf, signal: AbortSignal): Promise<Subject> {
  const experiment = await experimentOf(number);
  const orderBy = experiment.smallerIsBetter ? "best_validation" : "best_validation desc";
  const { trials } = await services.trials.listTrials({ experiment: byNumber(number), orderBy, pageSize: 1 }, within(signal));
  const [trial] = trials;
  if (!trial) throw new Error(`experiment ${number} has no trial yet`);
  return { trial, experiment, environment: await readEnvironment(trial, signal) };
}
