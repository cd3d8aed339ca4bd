// The trial that others are compared to.

import type { Trial } from "$gen/resolute/api/experiments/v1/trial_pb.js";
import { readUntilDone } from "$src/api/reading";
import { services, within } from "$src/api/services";

export class Baseline {
  trial = $state.raw<Trial | undefined>();
  problem = $state("");

  /** Reads the trial of a number, or forgets the one that was read; returns what ends that. */
  read(number: bigint | undefined): () => void {
    this.problem = "";
    if (number === undefined) this.trial = undefined;
    const ending = new AbortController();
    if (number !== undefined) void this.#load(number, ending.signal);
    return () => ending.abort();
  }

  async #load(number: bigint, signal: AbortSignal): Promise<void> {
    const ask = () => services.trials.getTrial({ trial: { key: { case: "number", value: number } } }, within(signal));
    const answer = await readUntilDone(ask, signal, (problem) => (this.problem = problem));
    if (!signal.aborted) this.trial = answer?.trial;
  }
}
