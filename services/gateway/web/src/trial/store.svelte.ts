// A trial as it changes. Watches tell no runs, so those are asked for when a change may concern them.

import type { Experiment } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import type { Trial } from "$gen/resolute/api/experiments/v1/trial_pb.js";
import { readUntilDone } from "$src/api/reading";
import { services, within } from "$src/api/services";
import { watch } from "$src/live/live.svelte";
import { experimentSubscription } from "$src/live/subscription";

export class TrialStore {
  trial = $state.raw<Trial | undefined>();
  problem = $state("");
  /** What it belongs to; absent until that is known. */
  experiment = $state.raw<Experiment | undefined>();
  readonly number: bigint;

  /** What its search selects by; empty until that is known. */
  get metric(): string {
    return this.experiment?.searcherMetric ?? "";
  }

  constructor(number: bigint) {
    this.number = number;
  }

  /** Loads and follows the trial; returns what ends that. */
  follow(): () => void {
    const ending = new AbortController();
    const ends: (() => void)[] = [() => ending.abort()];
    void this.#load(ending.signal).then((trial) => {
      if (!trial || ending.signal.aborted) return;
      ends.push(this.#watch(trial, ending.signal));
      void this.#loadExperiment(trial, ending.signal);
    });
    return () => ends.forEach((end) => end());
  }

  #watch({ experimentNumber, revision }: Trial, signal: AbortSignal): () => void {
    let isReading = false;
    let hasChanged = false;
    // One read at a time, so that no older answer comes last; a change meanwhile makes it read again.
    const read = async () => {
      hasChanged = true;
      if (isReading) return;
      isReading = true;
      while (hasChanged && !signal.aborted) {
        hasChanged = false;
        await this.#load(signal);
      }
      isReading = false;
    };
    const asked = { number: experimentNumber, revision, trials: true };
    const subscription = experimentSubscription(asked, (_, trials) => {
      if (trials.some(({ number }) => number === this.number)) void read();
    });
    subscription.fail = (message) => (this.problem = message);
    return watch(subscription);
  }

  async #loadExperiment({ experimentNumber }: Trial, signal: AbortSignal): Promise<void> {
    const key = { case: "number", value: experimentNumber } as const;
    const ask = () => services.experiments.getExperiment({ experiment: { key }, brief: true }, within(signal));
    const answer = await readUntilDone(ask, signal, () => undefined);
    this.experiment = answer?.experiment;
  }

  async #load(signal: AbortSignal): Promise<Trial | undefined> {
    const key = { case: "number", value: this.number } as const;
    const ask = () => services.trials.getTrial({ trial: { key } }, within(signal));
    const answer = await readUntilDone(ask, signal, (problem) => (this.problem = problem));
    if (answer) this.trial = answer.trial;
    return answer?.trial;
  }
}
