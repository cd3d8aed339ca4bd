// By which numbers people know the trials whose lines are shown.

import { SvelteMap } from "svelte/reactivity";
import type { Line } from "$gen/resolute/api/logs/v1/line_pb.js";
import { services, within } from "$src/api/services";

const AT_ONCE = 1000;

export class TrialNames {
  /** By UUID. */
  readonly shown = new SvelteMap<string, bigint>();
  readonly #asked = new Set<string>();
  readonly #ending = new AbortController();
  readonly #experiment: bigint;

  constructor(experiment: bigint) {
    this.#experiment = experiment;
  }

  /** Asks for the numbers of trials that were not seen before. */
  async want(lines: readonly Line[]): Promise<void> {
    const trialIds = [...new Set(lines.map(({ trialId }) => trialId))].filter((one) => !this.#asked.has(one)).slice(0, AT_ONCE);
    if (!trialIds.length) return;
    for (const one of trialIds) this.#asked.add(one);
    try {
      const experiment = { key: { case: "number", value: this.#experiment } } as const;
      const found = await services.trials.listTrialNumbers({ experiment, trialIds }, within(this.#ending.signal));
      for (const [at, id] of found.trialIds.entries()) this.shown.set(id, found.numbers[at] ?? 0n);
    } catch {
      for (const one of trialIds) this.#asked.delete(one); // asked again with the next lines; the log is whole without them
    }
  }

  end(): void {
    this.#ending.abort();
  }
}
