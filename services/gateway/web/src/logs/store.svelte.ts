// Lines of a log: the newest ones, older ones on request, and those that come.

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Line, LineFilterSchema } from "$gen/resolute/api/logs/v1/line_pb.js";
import { failureOf } from "$client/errors.js";
import { services, within } from "$src/api/services";
import { watch } from "$src/live/live.svelte";
import { linesSubscription } from "$src/live/subscription";

type Filter = MessageInitShape<typeof LineFilterSchema>;

const PAGE = 1000;
/** Most lines that are kept; those at the far end go, and can be loaded again. */
export const MOST_LINES = 50_000;

export class LogStore {
  lines = $state.raw<readonly Line[]>([]);
  loaded = $state(false);
  complete = $state(false);
  problem = $state("");
  /** Ids of ranks that were seen, for the filter. */
  ranks = $state.raw<readonly number[]>([]);
  #older = $state("");
  readonly #filter: Filter;
  readonly #ending = new AbortController();

  constructor(filter: Filter) {
    this.#filter = filter;
  }

  /** Whether there are older lines. */
  get hasOlder(): boolean {
    return this.#older !== "";
  }

  /** Loads the newest lines, and follows on; returns what ends both. */
  follow(): () => void {
    const ends: (() => void)[] = [() => this.#ending.abort()];
    void this.loadOlder(true).then(() => {
      if (this.#ending.signal.aborted || this.problem) return;
      const after = this.lines.at(-1)?.lineId ?? 0n;
      ends.push(watch(linesSubscription(this.#filter, after, (lines, complete) => this.#append(lines, complete))));
    });
    return () => ends.forEach((end) => end());
  }

  /** Loads a page of older lines. A page may be empty and still have more behind it. */
  async loadOlder(first = false): Promise<void> {
    if (!first && !this.#older) return;
    try {
      const request = { filter: this.#filter, orderBy: "line_id desc", pageSize: PAGE, pageToken: this.#older };
      const page = await services.logs.listLines(request, within(this.#ending.signal));
      this.lines = [...page.lines.reverse(), ...this.lines];
      this.#older = page.nextPageToken;
      this.#see(this.lines);
      this.problem = "";
    } catch (error) {
      if (!this.#ending.signal.aborted) this.problem = failureOf(error).message;
    }
    this.loaded = true;
  }

  #append(lines: readonly Line[], complete: boolean): void {
    this.complete = complete;
    if (!lines.length) return;
    const all = [...this.lines, ...lines];
    this.lines = all.length > MOST_LINES ? all.slice(-MOST_LINES) : all;
    this.#see(lines);
  }

  #see(lines: readonly Line[]): void {
    const ranks = new Set(this.ranks);
    for (const { rank } of lines) if (rank !== undefined) ranks.add(rank);
    if (ranks.size !== this.ranks.length) this.ranks = [...ranks].sort((a, b) => a - b);
  }
}
