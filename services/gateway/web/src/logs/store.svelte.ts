// Lines of a log: the newest ones, older ones on request, and those that come.

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Line, LineFilterSchema } from "$gen/resolute/api/logs/v1/line_pb.js";
import { failureOf } from "$client/errors.js";
import { readUntilDone } from "$src/api/reading";
import { services, within } from "$src/api/services";
import { watch } from "$src/live/live.svelte";
import { linesSubscription } from "$src/live/subscription";

type Filter = MessageInitShape<typeof LineFilterSchema>;

const PAGE = 1000;
/** Most lines that are kept when more come; the oldest go, and a new store can load them. */
export const MOST_LINES = 50_000;

export class LogStore {
  lines = $state.raw<readonly Line[]>([]);
  loaded = $state(false);
  complete = $state(false);
  problem = $state("");
  /** Whether the oldest lines that were loaded are kept no longer. What was before those cannot be put before the rest. */
  trimmed = $state(false);
  /** Ids of ranks that were seen, for the filter. */
  ranks = $state.raw<readonly number[]>([]);
  #older = $state("");
  #isLoading = false;
  readonly #filter: Filter;
  readonly #ending = new AbortController();

  constructor(filter: Filter) {
    this.#filter = filter;
  }

  /** Whether there are older lines to load. */
  get hasOlder(): boolean {
    return !this.trimmed && this.#older !== "";
  }

  /**
   * Loads the newest lines, and follows on.
   *
   * @param wanted A line to go back to, if it is not too far.
   * @returns What ends both.
   */
  follow(wanted?: bigint): () => void {
    const { signal } = this.#ending;
    const ends: (() => void)[] = [() => this.#ending.abort()];
    void readUntilDone(() => this.#load(), signal, (problem) => this.#tell(problem)).then((isRead) => {
      if (!isRead) return;
      const after = this.lines.at(-1)?.lineId ?? 0n;
      const subscription = linesSubscription(this.#filter, after, (lines, complete) => this.#append(lines, complete));
      subscription.fail = (message) => (this.problem = message);
      ends.push(watch(subscription));
      if (wanted !== undefined) void this.#goBackTo(wanted);
    });
    return () => ends.forEach((end) => end());
  }

  /** Loads a page of older lines. */
  async loadOlder(): Promise<void> {
    if (!this.hasOlder || this.#isLoading) return;
    this.#isLoading = true;
    try {
      await this.#load();
      this.problem = "";
    } catch (error) {
      if (!this.#ending.signal.aborted) this.problem = failureOf(error).message;
    }
    this.#isLoading = false;
  }

  async #goBackTo(wanted: bigint): Promise<void> {
    const isNeeded = () => this.hasOlder && !this.problem && this.lines.length < MOST_LINES / 2;
    while (isNeeded() && (this.lines[0]?.lineId ?? wanted) > wanted && !this.#ending.signal.aborted) await this.loadOlder();
  }

  /** Loads the next page, going back, that has a line. The service looks at so many lines a call, and may find none in them. */
  async #load(): Promise<true> {
    const { signal } = this.#ending;
    for (;;) {
      const request = { filter: this.#filter, orderBy: "line_id desc", pageSize: PAGE, pageToken: this.#older };
      const { lines, nextPageToken } = await services.logs.listLines(request, within(signal));
      if (this.trimmed) return true; // between these lines and the rest are some that were left out meanwhile
      this.#older = nextPageToken;
      if (!lines.length && nextPageToken) continue;
      this.lines = [...lines.reverse(), ...this.lines];
      this.#see(lines);
      return true;
    }
  }

  #tell(problem: string): void {
    this.problem = problem;
    this.loaded = true;
  }

  #append(lines: readonly Line[], complete: boolean): void {
    this.complete = complete;
    if (!lines.length) return;
    const all = [...this.lines, ...lines];
    if (all.length > MOST_LINES) this.trimmed = true;
    this.lines = all.slice(-MOST_LINES);
    this.#see(lines);
  }

  #see(lines: readonly Line[]): void {
    const ranks = new Set(this.ranks);
    for (const { rank } of lines) if (rank !== undefined) ranks.add(rank);
    if (ranks.size !== this.ranks.length) this.ranks = [...ranks].sort((a, b) => a - b);
  }
}
