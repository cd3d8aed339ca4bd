// A trial as it changes. Watches tell no runs, so those are asked for when a change may concern them.

import type { Trial } from "$gen/resolute/api/experiments/v1/trial_pb.js";
import { failureOf } from "$client/errors.js";
import { services, within } from "$src/api/services";
import { watch } from "$src/live/live.svelte";
import { experimentSubscription } from "$src/live/subscription";

export class TrialStore {
  trial = $state.raw<Trial | undefined>();
  problem = $state("");
  readonly number: bigint;

  constructor(number: bigint) {
    this.number = number;
  }

  /** Loads and follows the trial; returns what ends that. */
  follow(): () => void {
    const ending = new AbortController();
    const ends: (() => void)[] = [() => ending.abort()];
    void this.#load(ending.signal).then((trial) => {
      if (trial && !ending.signal.aborted) ends.push(this.#watch(trial, ending.signal));
    });
    return () => ends.forEach((end) => end());
  }

  #watch({ experimentNumber, revision }: Trial, signal: AbortSignal): () => void {
    const asked = { number: experimentNumber, revision, trials: true };
    return watch(
      experimentSubscription(asked, (_, trials) => {
        if (trials.some(({ number }) => number === this.number)) void this.#load(signal);
      }),
    );
  }

  async #load(signal: AbortSignal): Promise<Trial | undefined> {
    try {
      const key = { case: "number", value: this.number } as const;
      const { trial } = await services.trials.getTrial({ trial: { key } }, within(signal));
      this.trial = trial;
      this.problem = "";
    } catch (error) {
      if (!signal.aborted) this.problem = failureOf(error).message;
    }
    return this.trial;
  }
}
