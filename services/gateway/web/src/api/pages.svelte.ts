// A list that is read page by page, as far as a person wants.

import { readUntilDone } from "./reading";

interface Page<Item> {
  readonly items: readonly Item[];
  readonly nextPageToken: string;
}

type Read<Item> = (pageToken: string, signal: AbortSignal) => Promise<Page<Item>>;

export class Pages<Item> {
  /** What has been read; absent before the first page. */
  items = $state.raw<readonly Item[] | undefined>();
  problem = $state("");
  /** Whether a page is on its way: none is read twice. */
  busy = $state(false);
  #next = $state("");
  #query: { readonly read: Read<Item>; readonly signal: AbortSignal } | undefined;

  get hasMore(): boolean {
    return !!this.#next;
  }

  /** Reads the first page of a query, instead of those before; returns what ends reading. */
  begin(read: Read<Item>): () => void {
    const ending = new AbortController();
    this.#query = { read, signal: ending.signal };
    [this.items, this.problem, this.busy, this.#next] = [undefined, "", false, ""];
    void this.more();
    return () => ending.abort();
  }

  /** Reads the next page. */
  async more(): Promise<void> {
    if (!this.#query || this.busy) return;
    const { read, signal } = this.#query;
    const token = this.#next;
    this.busy = true;
    const page = await readUntilDone(() => read(token, signal), signal, (problem) => (this.problem = problem));
    if (signal.aborted) return;
    this.busy = false;
    if (!page) return;
    this.items = [...(this.items ?? []), ...page.items];
    this.#next = page.nextPageToken;
  }
}
