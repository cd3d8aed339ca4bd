// An experiment as it changes.

import type { Experiment } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import { readUntilDone } from "$src/api/reading";
import { services, within } from "$src/api/services";
import { watch } from "$src/live/live.svelte";
import { experimentSubscription } from "$src/live/subscription";

export class ExperimentStore {
  experiment = $state.raw<Experiment | undefined>();
  problem = $state("");
  readonly number: bigint;
  /** Ends what follow() loads. */
  #following: AbortSignal | undefined;
  /** The etag for which config and notes were asked again. */
  #askedFor = "";

  constructor(number: bigint) {
    this.number = number;
  }

  /** Loads and follows the experiment; returns what ends that. */
  follow(): () => void {
    const ending = new AbortController();
    this.#following = ending.signal;
    void this.#load(ending.signal, { brief: true });
    const subscription = experimentSubscription({ number: this.number }, (experiment) => experiment && this.take(experiment));
    subscription.fail = (message) => (this.problem = message);
    const end = watch(subscription);
    return () => {
      ending.abort();
      end();
    };
  }

  /** Loads the config and the notes too, which are large; returns what ends that. */
  loadWhole(): () => void {
    const ending = new AbortController();
    if (!this.experiment?.config) void this.#load(ending.signal, { brief: false });
    return () => ending.abort();
  }

  /**
   * Takes a newer state; watches tell no config and no notes, so those stay. Where somebody changed them, they are loaded
   * again, and until then the old etag stays too: who saves old notes is told of the conflict.
   */
  take(experiment: Experiment): void {
    const before = this.experiment;
    if (!before?.config || experiment.config) {
      this.experiment = experiment;
      return;
    }
    const { config, notes, etag } = before;
    this.experiment = { ...experiment, config, notes, etag };
    if (etag === experiment.etag || this.#askedFor === experiment.etag || !this.#following) return;
    this.#askedFor = experiment.etag;
    void this.#load(this.#following, { brief: false });
  }

  async #load(signal: AbortSignal, { brief }: { brief: boolean }): Promise<void> {
    const key = { case: "number", value: this.number } as const;
    const ask = () => services.experiments.getExperiment({ experiment: { key }, brief }, within(signal));
    const experiment = (await readUntilDone(ask, signal, (problem) => (this.problem = problem)))?.experiment;
    if (experiment && experiment.revision >= (this.experiment?.revision ?? 0n)) this.take(experiment);
    else if (experiment?.config && this.experiment) {
      const { config, notes, etag } = experiment;
      this.experiment = { ...this.experiment, config, notes, etag };
    }
  }
}
