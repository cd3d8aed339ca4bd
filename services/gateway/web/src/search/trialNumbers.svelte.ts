// By which numbers people know the trials of an experiment.

import { failureOf } from "$client/errors.js";
import { services, within } from "$src/api/services";

export class TrialNumbers {
  /** By their keys within the search. */
  byKey = $state.raw<ReadonlyMap<string, bigint>>(new Map());
  problem = $state("");
  readonly #experiment: bigint;
  #last = 0n;

  constructor(experiment: bigint) {
    this.#experiment = experiment;
  }

  /** The key of a trial; empty where it is not known. */
  keyOf(number: string): string {
    for (const [key, one] of this.byKey) if (String(one) === number) return key;
    return "";
  }

  /** Reads those of trials that have come, where there are more than are known; returns what ends that. */
  read(count: number): () => void {
    const ending = new AbortController();
    if (count > this.byKey.size) {
      this.#load(ending.signal).catch((error: unknown) => {
        if (!ending.signal.aborted) this.problem = failureOf(error).message; // the next trial asks again
      });
    }
    return () => ending.abort();
  }

  async #load(signal: AbortSignal): Promise<void> {
    const experiment = { key: { case: "number", value: this.#experiment } } as const;
    const found = new Map(this.byKey);
    let last = this.#last;
    let hasMore = true;
    while (hasMore) {
      const page = await services.trials.listTrialNumbers({ experiment, afterNumber: last }, within(signal));
      for (const [at, number] of page.numbers.entries()) found.set(page.trialKeys[at] ?? "", number);
      last = page.numbers.at(-1) ?? last;
      hasMore = !!page.nextPageToken;
    }
    this.byKey = found;
    this.#last = last;
    this.problem = "";
  }
}
