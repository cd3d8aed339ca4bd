// The log of a search in brief: what each of its entries did to which trial, in columns that only grow.

import { MoveKind, type ListMovesResponse } from "$gen/resolute/api/searcher/v1/searcher_service_pb.js";

/** What a decision compared with. */
export interface Limit {
  readonly rung: number;
  readonly threshold: number;
}

export class Moves {
  /** When each entry was appended, in milliseconds. */
  readonly times: number[] = [];
  /** How many moves each entry and all before it have. */
  readonly ends: number[] = [];
  readonly kinds: MoveKind[] = [];
  /** The trial of each move, by its place in the keys. */
  readonly trials: number[] = [];
  /** Metric of each move that is a validation. */
  readonly metrics: number[] = [];
  /** Bracket, length or rung to which a move leads, as its kind has one. */
  readonly places: number[] = [];
  readonly limits = new Map<number, Limit>();
  /** Keys of trials. */
  readonly keys: string[] = [];
  readonly #byKey = new Map<string, number>();

  /** Entries that are here. They are numbered from 1, without gaps. */
  get length(): number {
    return this.ends.length;
  }

  /** Moves of the first entries. */
  upTo(entries: number): number {
    return this.ends[entries - 1] ?? 0;
  }

  /** Adds the entries that follow those that are here. */
  add(page: ListMovesResponse): void {
    const offset = this.kinds.length;
    const trials = page.trialKeys.map((key) => this.#placeOf(key));
    let [metric, place, end] = [0, 0, offset];
    for (const seconds of page.times) this.times.push(seconds * 1000);
    for (const count of page.moveCounts) this.ends.push((end += count));
    for (const [at, kind] of page.kinds.entries()) {
      this.kinds.push(kind);
      this.trials.push(trials[page.trials[at] ?? 0] ?? 0);
      this.metrics.push(HAS_METRIC.has(kind) ? (page.metrics[metric++] ?? NaN) : NaN);
      this.places.push(HAS_PLACE.has(kind) ? (page.places[place++] ?? 0) : 0);
    }
    for (const [at, move] of page.thresholdMoves.entries()) {
      this.limits.set(offset + move, { rung: page.thresholdRungs[at] ?? 0, threshold: page.thresholds[at] ?? NaN });
    }
  }

  /** Positions of the entries, among the first ones, that concern a trial. */
  entriesOf(key: string, entries: number): number[] {
    const trial = this.#byKey.get(key);
    const found: number[] = [];
    for (let entry = 0, move = 0; entry < entries; entry += 1) {
      const end = this.ends[entry] ?? move;
      let concerns = false;
      for (; move < end; move += 1) concerns ||= this.trials[move] === trial;
      if (concerns) found.push(entry + 1);
    }
    return found;
  }

  #placeOf(key: string): number {
    let found = this.#byKey.get(key);
    if (found === undefined) {
      this.#byKey.set(key, (found = this.keys.length));
      this.keys.push(key);
    }
    return found;
  }
}

const HAS_METRIC: ReadonlySet<MoveKind> = new Set([MoveKind.COMPLETED, MoveKind.REPORTED]);
const HAS_PLACE: ReadonlySet<MoveKind> = new Set([MoveKind.CREATE, MoveKind.TRAIN, MoveKind.PROMOTE, MoveKind.COMPLETED]);
