// The best validation of each experiment of a page.

import { SvelteMap } from "svelte/reactivity";
import type { Experiment } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import type { BestValidation } from "$gen/resolute/api/metrics/v1/validation_pb.js";
import { services, within } from "$src/api/services";
import { hasEnded } from "$src/api/states";

/** A running experiment is asked about so often at most. */
const EVERY_MS = 10_000;
const AT_ONCE = 3;

interface Asked {
  readonly revision: bigint;
  readonly time: number;
}

export class Bests {
  readonly shown = new SvelteMap<string, BestValidation | undefined>();
  readonly #asked = new Map<string, Asked>();
  readonly #ending = new AbortController();
  #waiting: Experiment[] = [];
  #busy = 0;

  /** Asks about experiments that have changed since they were asked about. */
  want(experiments: readonly Experiment[]): void {
    const time = Date.now();
    this.#waiting = experiments.filter((one) => one.searcherMetric && one.trialCount && this.#isDue(one, time));
    while (this.#busy < AT_ONCE && this.#waiting.length) void this.#work();
  }

  /** Asks nothing any more. */
  end(): void {
    this.#waiting = [];
    this.#ending.abort();
  }

  #isDue(one: Experiment, now: number): boolean {
    const before = this.#asked.get(one.experimentId);
    return !before || (before.revision !== one.revision && (hasEnded(one) || now - before.time > EVERY_MS));
  }

  async #work(): Promise<void> {
    this.#busy += 1;
    for (let one = this.#waiting.shift(); one; one = this.#waiting.shift()) {
      const { experimentId, revision } = one;
      this.#asked.set(experimentId, { revision, time: Date.now() });
      try {
        const { experimentBest } = await services.metrics.getBestValidation({ experimentId }, within(this.#ending.signal));
        this.shown.set(experimentId, experimentBest);
      } catch {
        this.#asked.delete(experimentId); // asked again with the next change; the list is whole without it
      }
    }
    this.#busy -= 1;
  }
}
