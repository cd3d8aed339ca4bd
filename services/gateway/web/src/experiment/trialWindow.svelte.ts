// Some trials of an experiment, in an order of the server's: those that are shown, however many there are.

import type { Trial, TrialState } from "$gen/resolute/api/experiments/v1/trial_pb.js";
import { readUntilDone } from "$src/api/reading";
import { services, within } from "$src/api/services";
import { rankedTrials } from "./metricRanks";
import type { MetricOrder } from "./ranking";

/** Which trials, of all that an experiment has. */
export interface Wanted {
  readonly number: bigint;
  /** Such as "best_validation desc". */
  readonly orderBy: string;
  readonly count: number;
  readonly skip?: number;
  readonly maxHparams: number;
  /** Whether those that have never run are left out. */
  readonly started?: boolean;
  readonly withoutDiverged?: boolean;
  /** Only trials in one of these. */
  readonly states?: TrialState[];
  /** Whether trials come with their runs. */
  readonly includeRuns?: boolean;
  /** In the place of an order by what trials have: only trials that have this metric, of the experiment with this UUID. */
  readonly ranked?: { readonly experimentId: string; readonly by: MetricOrder } | undefined;
}

export class TrialWindow {
  trials = $state.raw<readonly Trial[] | undefined>();
  problem = $state("");
  #wanted: Wanted | undefined;
  #reading: AbortController | undefined;
  #resting: ReturnType<typeof setTimeout> | undefined;
  /** Revision of the experiment that is known, and the one that was known when the trials were asked for. */
  #newest = 0n;
  #read = 0n;
  readonly #everyMs: number;

  /** Reads trials again, while their experiment changes, so often at most. */
  constructor(everyMs = 1000) {
    this.#everyMs = everyMs;
  }

  /** Reads trials in the place of those that were read before, which stay until then; returns what ends that. */
  show(wanted: Wanted): () => void {
    this.#end();
    this.#wanted = wanted;
    void this.#load(wanted);
    return () => this.#end();
  }

  /** Says which revision the experiment has; trials of an older one are read again. */
  changed(revision: bigint): void {
    this.#newest = revision;
    if (this.#wanted && this.#newest !== this.#read && !this.#reading && this.#resting === undefined) void this.#load(this.#wanted);
  }

  #end(): void {
    this.#reading?.abort();
    clearTimeout(this.#resting);
    this.#reading = this.#resting = this.#wanted = undefined;
  }

  async #load(wanted: Wanted): Promise<void> {
    this.#read = this.#newest;
    const ending = (this.#reading = new AbortController());
    const trials = await readUntilDone(() => ask(wanted, ending.signal), ending.signal, (problem) => (this.problem = problem));
    if (ending.signal.aborted) return;
    this.#reading = undefined;
    if (trials) this.trials = trials;
    this.#resting = setTimeout(() => {
      this.#resting = undefined;
      this.changed(this.#newest);
    }, this.#everyMs);
  }
}

async function ask({ number, count, ranked, ...rest }: Wanted, signal: AbortSignal): Promise<readonly Trial[]> {
  const request = { experiment: { key: { case: "number", value: number } }, pageSize: count, ...rest } as const;
  if (!ranked) return (await services.trials.listTrials(request, within(signal))).trials;
  const trialIds = await rankedTrials(ranked.experimentId, ranked.by, { skip: rest.skip ?? 0, count, signal });
  if (!trialIds.length) return [];
  const page = await services.trials.listTrials({ ...request, trialIds, skip: 0 }, within(signal));
  const byId = new Map(page.trials.map((one) => [one.trialId, one]));
  return trialIds.flatMap((id) => byId.get(id) ?? []);
}
