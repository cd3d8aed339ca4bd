// Some entries of the log of a search: those that are read by people.

import type { LogEntry } from "$gen/resolute/api/searcher/v1/event_pb.js";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ListEventsRequestSchema } from "$gen/resolute/api/searcher/v1/searcher_service_pb.js";
import { readUntilDone } from "$src/api/reading";
import { services, within } from "$src/api/services";

/** Most entries of a window. */
export const MOST_SHOWN = 1000;

export class LogWindow {
  /** Newest first; nothing before the first answer. */
  entries = $state.raw<readonly LogEntry[] | undefined>();
  problem = $state("");

  /** Reads the entries up to a position, so many; those that were read before stay until then. Returns what ends that. */
  upTo(searchId: string, position: number, count: number): () => void {
    if (!position) return this.#none();
    const after = Math.max(0, position - count);
    return this.#read({ searchId, afterSequence: BigInt(after), pageSize: position - after });
  }

  /** Reads entries at ascending positions, the last ones where they are many. */
  at(searchId: string, positions: readonly number[]): () => void {
    if (!positions.length) return this.#none();
    return this.#read({ searchId, sequences: positions.slice(-MOST_SHOWN).map(BigInt), pageSize: MOST_SHOWN });
  }

  #none(): () => void {
    this.entries = [];
    return () => undefined;
  }

  #read(request: MessageInitShape<typeof ListEventsRequestSchema>): () => void {
    const ending = new AbortController();
    const ask = () => services.searcher.listEvents(request, within(ending.signal));
    void readUntilDone(ask, ending.signal, (problem) => (this.problem = problem)).then((page) => {
      if (page) this.entries = [...page.entries].reverse();
    });
    return () => ending.abort();
  }
}
