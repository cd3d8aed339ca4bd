// A stretch of a log: its newest lines and those that come, or those around one that somebody wants to see.

import type { Line } from "$gen/resolute/api/logs/v1/line_pb.js";
import { failureOf } from "$client/errors.js";
import { readUntilDone } from "$src/api/reading";
import { services, within } from "$src/api/services";
import { watch } from "$src/live/live.svelte";
import { linesSubscription } from "$src/live/subscription";
import type { Filter } from "./filter";

const PAGE = 1000;
/** Most lines that are kept. Those at the other end go, and can be loaded again. */
export const MOST_LINES = 50_000;

interface Stretch {
  /** By their numbers. */
  readonly lines: readonly Line[];
  /** Whether there are more in the direction of reading. */
  readonly hasMore: boolean;
}

export class LogStore {
  lines = $state.raw<readonly Line[]>([]);
  loaded = $state(false);
  complete = $state(false);
  problem = $state("");
  hasOlder = $state(false);
  /** Whether there are newer lines to load; none are followed until then. */
  hasNewer = $state(false);
  /** Ids of ranks that were seen, for the filter. */
  ranks = $state.raw<readonly number[]>([]);
  #isLoading = false;
  #showing = new AbortController();
  readonly #filter: Filter;
  readonly #ending = new AbortController();

  constructor(filter: Filter) {
    this.#filter = filter;
  }

  /** Whether a line would be among the lines that are loaded. */
  covers(lineId: bigint): boolean {
    const [first, last] = [this.lines[0]?.lineId, this.lines.at(-1)?.lineId];
    if (first === undefined || last === undefined) return this.loaded;
    return (lineId >= first || !this.hasOlder) && (lineId <= last || !this.hasNewer);
  }

  /** Shows the newest lines and follows on, or shows those around a line; returns what ends both. */
  follow(wanted?: bigint): () => void {
    void this.show(wanted);
    return () => {
      this.#showing.abort();
      this.#ending.abort();
    };
  }

  /** Shows the newest lines and follows on, or those around a line, in the place of what is shown. */
  async show(wanted?: bigint): Promise<void> {
    this.#showing.abort();
    const { signal } = (this.#showing = new AbortController());
    const read = (request: Reading) => readUntilDone(() => this.#read(request, signal), signal, (problem) => this.#tell(problem));
    const older = await read({ descending: true, ...(wanted === undefined ? {} : { behind: wanted + 1n }) });
    const newer = wanted === undefined ? { lines: [], hasMore: false } : older && (await read({ behind: wanted }));
    if (!older || !newer) return;
    this.lines = [...older.lines, ...newer.lines];
    [this.hasOlder, this.hasNewer, this.loaded] = [older.hasMore, newer.hasMore, true];
    if (!this.hasNewer) this.#watch();
  }

  /** Loads a page of older lines. */
  async loadOlder(): Promise<void> {
    const behind = this.lines[0]?.lineId;
    if (!this.hasOlder || behind === undefined) return;
    await this.#load({ descending: true, behind }, ({ lines, hasMore }) => {
      if (this.lines[0]?.lineId !== behind) return; // lines have come meanwhile, and the oldest ones went
      const all = [...lines, ...this.lines];
      if (all.length > MOST_LINES && !this.hasNewer) this.#renew().abort();
      this.hasNewer ||= all.length > MOST_LINES;
      this.lines = all.slice(0, MOST_LINES);
      this.hasOlder = hasMore;
    });
  }

  /** Loads a page of newer lines, and follows on where those were the newest. */
  async loadNewer(): Promise<void> {
    const behind = this.lines.at(-1)?.lineId;
    if (!this.hasNewer || behind === undefined) return;
    await this.#load({ behind }, ({ lines, hasMore }) => {
      this.#append(lines);
      this.hasNewer = hasMore;
      if (!hasMore) this.#watch();
    });
  }

  /**
   * Finds the next line that matches more than the filter.
   *
   * @param more What it must match as well.
   * @param behind The line from which on it is searched for; absent for the last line.
   * @returns Its number; nothing where there is none.
   */
  async find(more: Partial<Filter>, { behind, descending = false }: { behind?: bigint | undefined; descending?: boolean }): Promise<bigint | undefined> {
    const request = { more, descending, size: 1, ...(behind === undefined ? {} : { behind }) };
    return (await this.#read(request, this.#ending.signal)).lines[0]?.lineId;
  }

  /** What ends what is followed and loaded now, and lets something else begin. */
  #renew(): AbortController {
    const before = this.#showing;
    this.#showing = new AbortController();
    return before;
  }

  #watch(): void {
    const { signal } = this.#showing;
    const subscription = linesSubscription(this.#filter, this.lines.at(-1)?.lineId ?? 0n, (lines, complete) => {
      if (signal.aborted) return;
      this.complete = complete;
      if (lines.length) this.#append(lines);
    });
    subscription.fail = (message) => (this.problem = message);
    signal.addEventListener("abort", watch(subscription), { once: true });
  }

  async #load(request: Reading, take: (stretch: Stretch) => void): Promise<void> {
    const { signal } = this.#showing;
    if (this.#isLoading) return;
    this.#isLoading = true;
    try {
      const stretch = await this.#read(request, signal);
      if (!signal.aborted) take(stretch);
      this.problem = "";
    } catch (error) {
      if (!signal.aborted) this.problem = failureOf(error).message;
    }
    this.#isLoading = false;
  }

  /** Reads until there is a line. The service looks at so many lines a call, and may find none in them. */
  async #read({ more = {}, behind, descending = false, size = PAGE }: Reading, signal: AbortSignal): Promise<Stretch> {
    const filter = { ...this.#filter, ...more } as Filter;
    const request = { filter, orderBy: descending ? "line_id desc" : "", pageSize: size };
    const from = behind === undefined ? {} : { behindLineId: behind };
    for (let pageToken = ""; ; ) {
      const { lines, nextPageToken } = await services.logs.listLines({ ...request, ...from, pageToken }, within(signal));
      pageToken = nextPageToken;
      if (!lines.length && pageToken) continue;
      this.#see(lines);
      return { lines: descending ? lines.reverse() : lines, hasMore: !!pageToken };
    }
  }

  #tell(problem: string): void {
    this.problem = problem;
    if (problem) this.loaded = true;
  }

  #append(lines: readonly Line[]): void {
    const all = [...this.lines, ...lines];
    if (all.length > MOST_LINES) this.hasOlder = true;
    this.lines = all.slice(-MOST_LINES);
    this.#see(lines);
  }

  #see(lines: readonly Line[]): void {
    const ranks = new Set(this.ranks);
    for (const { rank } of lines) if (rank !== undefined) ranks.add(rank);
    if (ranks.size !== this.ranks.length) this.ranks = [...ranks].sort((a, b) => a - b);
  }
}

interface Reading {
  readonly more?: Partial<Filter>;
  readonly behind?: bigint;
  readonly descending?: boolean;
  readonly size?: number;
}
