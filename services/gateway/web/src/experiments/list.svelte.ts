// A page of experiments, which stays as it is while what it shows changes.

import type { Experiment, ExperimentKind } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import { isRefusal, readUntilDone } from "$src/api/reading";
import { services, within } from "$src/api/services";
import { hasEnded, isTask } from "$src/api/states";
import { watch } from "$src/live/live.svelte";
import { experimentSubscription, queueSubscription } from "$src/live/subscription";
import { failureOf } from "$client/errors.js";
import { NEWEST_FIRST } from "./order";
import { totalsText } from "./totals";

const PAGE_SIZE = 50;
export const MOST_CHOSEN = 1000;
const RELOAD_MS = 3000;

export interface Query {
  /** What was typed. */
  readonly filter: string;
  readonly orderBy: string;
  readonly pageToken: string;
  /** Those of tasks; absent for experiments. */
  readonly kinds?: readonly ExperimentKind[];
}

export class ExperimentsList {
  rows = $state.raw<readonly Experiment[] | undefined>();
  nextPageToken = $state("");
  problem = $state("");
  /** Whether asking again for the same would fail again. */
  isRefused = $state(false);
  /** What all that match are together, also those of other pages. */
  totals = $state("");
  /** How often the rows ceased to be live, and must be loaded again. */
  lost = $state(0);
  /** Whether experiments were submitted that are not among the rows. */
  hasNew = $state(false);
  #newest: bigint | undefined;
  #again: ReturnType<typeof setTimeout> | undefined;

  /** Loads a page, and follows its experiments; returns what ends both. */
  show(query: Query): () => void {
    const ending = new AbortController();
    const ends: (() => void)[] = [() => ending.abort()];
    this.hasNew = false;
    ends.push(() => clearTimeout(this.#again));
    this.#newest = undefined;
    void this.#load(query, ending.signal).then((rows) => {
      if (ending.signal.aborted || !rows) return;
      ends.push(...rows.filter((one) => !hasEnded(one)).map((one) => this.#follow(one)));
      ends.push(watch(queueSubscription((jobs) => this.#compare(jobs.filter((job) => isTask(job) === !!query.kinds).map((job) => job.experimentNumber)))));
    });
    return () => ends.forEach((end) => end());
  }

  /** The first experiments that match, by their order, and whether there are more. */
  async first(most: number, { filter, orderBy }: Pick<Query, "filter" | "orderBy">, signal: AbortSignal): Promise<{ experiments: readonly Experiment[]; hasMore: boolean }> {
    const { experiments, nextPageToken } = await this.#ask({ filter, orderBy, pageToken: "" }, signal, most);
    return { experiments, hasMore: !!nextPageToken };
  }

  /** Puts what a call returned into its row. */
  replace(changed: Experiment): void {
    this.rows = this.rows?.map((one) => (one.number === changed.number ? changed : one));
  }

  async #load(query: Query, signal: AbortSignal): Promise<readonly Experiment[] | undefined> {
    const { filter, orderBy, pageToken } = query;
    const ask = () => this.#ask(query, signal, PAGE_SIZE);
    const page = await readUntilDone(ask, signal, (problem) => (this.problem = problem));
    if (!page) return undefined;
    this.rows = page.experiments;
    this.nextPageToken = page.nextPageToken;
    this.totals = page.totals ? totalsText(page.totals) : "";
    if (orderBy === NEWEST_FIRST && !pageToken && !filter.trim()) this.#newest = page.experiments[0]?.number ?? 0n;
    return this.rows;
  }

  async #ask({ filter, orderBy, pageToken, kinds = [] }: Query, signal: AbortSignal, pageSize: number) {
    try {
      this.isRefused = false;
      const request = { filter, archived: false, orderBy, pageToken, pageSize, kinds: [...kinds], includeTotals: pageSize === PAGE_SIZE };
      return await services.experiments.listExperiments(request, within(signal));
    } catch (error) {
      this.isRefused = isRefusal(failureOf(error).code);
      throw error;
    }
  }

  #follow({ number, revision }: Experiment): () => void {
    const subscription = experimentSubscription({ number, revision }, (experiment) => experiment && this.replace(experiment));
    subscription.fail = () => this.#loseLive();
    return watch(subscription);
  }

  /** An experiment that was deleted ends the watch of all: the page is loaded again without it. */
  #loseLive(): void {
    clearTimeout(this.#again);
    this.#again = setTimeout(() => (this.lost += 1), RELOAD_MS);
  }

  /** Notices experiments that were submitted since the page was loaded, or since the queue was first seen. */
  #compare(queued: readonly bigint[]): void {
    const newest = queued.reduce((most, number) => (number > most ? number : most), 0n);
    this.#newest ??= newest;
    if (newest > this.#newest) this.hasNew = true;
  }
}
