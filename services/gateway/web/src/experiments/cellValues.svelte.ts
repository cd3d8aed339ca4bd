// Values of metrics for the experiments of a page: those of its columns that other services tell.

import { SvelteMap } from "svelte/reactivity";
import type { Experiment } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import { services, within } from "$src/api/services";
import { hasEnded } from "$src/api/states";
import { chosenValue, type MetricColumn } from "$src/columns/metricColumn";
import type { Column } from "./columns";

/** A running experiment is asked about so often at most. */
const EVERY_MS = 10_000;
const AT_ONCE = 3;

export interface CellValue {
  readonly value: number | undefined;
  /** Steps completed there. */
  readonly steps: bigint;
}

interface Wanted {
  readonly experiment: Experiment;
  readonly column: Column;
}

interface Asked {
  readonly revision: bigint;
  readonly time: number;
}

export const cellKey = (experimentId: string, columnId: string): string => `${experimentId} ${columnId}`;

/** The best summaries of one metric over all trials of an experiment come first. */
const ORDER: Readonly<Record<MetricColumn["choice"], string>> = { min: "min", max: "max desc", last: "last_steps desc" };

export class CellValues {
  /** By experiment and column. */
  readonly shown = new SvelteMap<string, CellValue | undefined>();
  readonly #asked = new Map<string, Asked>();
  readonly #ending = new AbortController();
  #waiting: Wanted[] = [];
  #busy = 0;

  /** Asks about experiments that have changed since they were asked about. */
  want(experiments: readonly Experiment[], columns: readonly Column[]): void {
    const time = Date.now();
    const asking = columns.filter(({ metric }) => metric);
    this.#waiting = experiments
      .filter(({ trialCount }) => trialCount)
      .flatMap((experiment) => asking.map((column) => ({ experiment, column })))
      .filter((one) => this.#isDue(one, time));
    while (this.#busy < AT_ONCE && this.#waiting.length) void this.#work();
  }

  /** Ends with what is asked for. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** Asks nothing any more. */
  end(): void {
    this.#waiting = [];
    this.#ending.abort();
  }

  #isDue({ experiment, column }: Wanted, now: number): boolean {
    const before = this.#asked.get(cellKey(experiment.experimentId, column.id));
    return !before || (before.revision !== experiment.revision && (hasEnded(experiment) || now - before.time > EVERY_MS));
  }

  async #work(): Promise<void> {
    this.#busy += 1;
    for (let one = this.#waiting.shift(); one; one = this.#waiting.shift()) {
      const { experimentId, revision } = one.experiment;
      const key = cellKey(experimentId, one.column.id);
      this.#asked.set(key, { revision, time: Date.now() });
      try {
        if (one.column.metric) this.shown.set(key, await this.#ask(experimentId, one.column.metric));
      } catch {
        this.#asked.delete(key); // asked again with the next change; the list is whole without it
      }
    }
    this.#busy -= 1;
  }

  async #ask(experimentId: string, column: MetricColumn): Promise<CellValue | undefined> {
    const options = within(this.#ending.signal);
    const { group, name } = column.metric;
    const request = { experimentId, groups: [group], names: [name], orderBy: ORDER[column.choice], pageSize: 1 };
    const [found] = (await services.metrics.listSummaries(request, options)).summaries;
    return found && { value: chosenValue(found, column.choice), steps: found.lastSteps };
  }
}
