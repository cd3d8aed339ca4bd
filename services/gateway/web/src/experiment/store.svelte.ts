// An experiment with its trials, as they change.

import type { Experiment } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import type { Trial } from "$gen/resolute/api/experiments/v1/trial_pb.js";
import { readUntilDone } from "$src/api/reading";
import { services, within } from "$src/api/services";
import { watch } from "$src/live/live.svelte";
import { experimentSubscription } from "$src/live/subscription";

export class ExperimentStore {
  experiment = $state.raw<Experiment | undefined>();
  problem = $state("");
  #trials = $state.raw<ReadonlyMap<bigint, Trial>>(new Map());
  readonly trials = $derived([...this.#trials.values()]);
  readonly number: bigint;

  constructor(number: bigint) {
    this.number = number;
  }

  /** Loads and follows the experiment; returns what ends that. */
  follow(): () => void {
    const ending = new AbortController();
    void this.#load(ending.signal);
    const subscription = experimentSubscription({ number: this.number, trials: true }, (experiment, trials) => {
      if (experiment) this.take(experiment);
      if (!trials.length) return;
      const changed = new Map(this.#trials);
      for (const trial of trials) changed.set(trial.number, trial);
      this.#trials = changed;
    });
    subscription.fail = (message) => (this.problem = message);
    const end = watch(subscription);
    return () => {
      ending.abort();
      end();
    };
  }

  /** Takes a newer state; watches tell no config and no notes, so those stay. */
  take(experiment: Experiment): void {
    const { config, notes } = this.experiment ?? experiment;
    this.experiment = config && !experiment.config ? { ...experiment, config, notes } : experiment;
  }

  async #load(signal: AbortSignal): Promise<void> {
    const key = { case: "number", value: this.number } as const;
    const ask = () => services.experiments.getExperiment({ experiment: { key } }, within(signal));
    const experiment = (await readUntilDone(ask, signal, (problem) => (this.problem = problem)))?.experiment;
    if (experiment && experiment.revision >= (this.experiment?.revision ?? 0n)) this.experiment = experiment;
    else if (experiment?.config && this.experiment) this.experiment = { ...this.experiment, config: experiment.config, notes: experiment.notes };
  }
}
