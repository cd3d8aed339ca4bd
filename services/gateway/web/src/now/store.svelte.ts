// What somebody wants to know who comes back: what runs, what needs a person, what has ended meanwhile.

import { type Experiment, ExperimentActivity, ExperimentKind, ExperimentState } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import type { Job } from "$gen/resolute/api/experiments/v1/job_pb.js";
import { failureOf } from "$client/errors.js";
import { readUntilDone } from "$src/api/reading";
import { services, within } from "$src/api/services";
import { watch } from "$src/live/live.svelte";
import { queueSubscription } from "$src/live/subscription";
import { Throttled } from "$src/ui/throttled.svelte";
import { type Doing, readDoing } from "./doing";

const [MOST, MOST_DRAWN] = [50, 12];
const EVERY_MS = 3000;
const ENDED = [ExperimentState.COMPLETED, ExperimentState.CANCELED, ExperimentState.ERROR];

export class NowStore {
  /** Live experiments in the order of the queue. */
  jobs = $state.raw<readonly Job[] | undefined>();
  /** The same by number, with what a queue does not tell. */
  live = $state.raw<ReadonlyMap<bigint, Experiment>>(new Map());
  /** What the first of them do that run, by number. */
  doing = $state.raw<ReadonlyMap<bigint, Doing>>(new Map());
  ended = $state.raw<readonly Experiment[] | undefined>();
  problem = $state("");
  /** Changes as the queue does, some seconds apart. */
  readonly #moved = new Throttled<number>(EVERY_MS);

  /** Follows the queue; returns what ends that. */
  follow(): () => void {
    const end = watch(
      queueSubscription((jobs) => {
        this.jobs = jobs;
        this.#moved.offer(Date.now());
      }),
    );
    return () => {
      this.#moved.end();
      end();
    };
  }

  /** Reads what the queue does not tell, now and whenever it has moved; returns what ends that. */
  read(): () => void {
    void this.#moved.shown;
    const ending = new AbortController();
    const list = (states: ExperimentState[], orderBy: string) =>
      readUntilDone(
        () => services.experiments.listExperiments({ states, orderBy, pageSize: MOST, archived: false }, within(ending.signal)),
        ending.signal,
        (problem) => (this.problem = problem),
      );
    void list([ExperimentState.ACTIVE, ExperimentState.PAUSED], "number desc").then((page) => {
      if (!page) return;
      this.live = new Map(page.experiments.map((one) => [one.number, one]));
      void this.#readDoing(ending.signal);
    });
    void list(ENDED, "end_time desc").then((page) => {
      if (page) this.ended = page.experiments;
    });
    return () => ending.abort();
  }

  async #readDoing(signal: AbortSignal): Promise<void> {
    const running = [...this.live.values()].filter(({ activity, kind }) => activity === ExperimentActivity.RUNNING && kind === ExperimentKind.SEARCH);
    const read = async (one: Experiment) => [one.number, await readDoing(one, signal)] as const;
    try {
      this.doing = new Map(await Promise.all(running.slice(0, MOST_DRAWN).map(read)));
    } catch (error) {
      if (!signal.aborted) this.problem = failureOf(error).message;
    }
  }
}
