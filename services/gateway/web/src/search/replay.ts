// Where the trials of a search stood after some of the entries of its log.

import type { LogEntry } from "$gen/resolute/api/searcher/v1/event_pb.js";
import type { Operation } from "$gen/resolute/api/searcher/v1/operation_pb.js";
import { MoveKind } from "$gen/resolute/api/searcher/v1/searcher_service_pb.js";
import type { Moves } from "./moves";

/** What a trial does: it trains, waits for a decision, was closed by the search, or exited before that. */
export type Standing = "trains" | "waits" | "closed" | "exited";

export interface Placed {
  readonly key: string;
  readonly bracket: number;
  /** Length that it trains to, or was last trained to; in time-driven searches the number of its rung. */
  rung: number;
  standing: Standing;
  /** Values of the metric by rung; absent where it has not reported. */
  readonly metrics: Map<number, number>;
}

export interface Bracket {
  /** Lengths, or numbers of rungs, ascending. */
  readonly rungs: number[];
  /** By the rung's position: the metric that the last decision there compared with. */
  readonly thresholds: Map<number, number>;
}

export interface Board {
  /** The trials that were asked for, in that order. */
  readonly trials: readonly Placed[];
  readonly brackets: ReadonlyMap<number, Bracket>;
  /** Whether rungs are lengths that trials are trained to. */
  readonly byLength: boolean;
}

/** Decisions of an entry about a trial. */
export const decisionsAbout = ({ operations }: LogEntry, key: string): Operation[] =>
  operations.filter(({ kind }) => kind.value && "trialKey" in kind.value && kind.value.trialKey === key);

/** The board after the first entries of a log. */
export function boardAt(moves: Moves, entries: number): Board {
  const board = new BoardUnderWay(moves);
  const end = moves.upTo(entries);
  for (let move = 0; move < end; move += 1) board.take(move);
  return board.whole();
}

class BoardUnderWay {
  readonly #moves: Moves;
  readonly #trials: Placed[] = [];
  /** By the places of their keys. */
  readonly #byPlace: (Placed | undefined)[] = [];
  readonly #brackets = new Map<number, Bracket>();
  #byLength = false;

  constructor(moves: Moves) {
    this.#moves = moves;
  }

  whole(): Board {
    for (const { rungs } of this.#brackets.values()) rungs.sort((a, b) => a - b);
    return { trials: this.#trials, brackets: this.#brackets, byLength: this.#byLength };
  }

  take(move: number): void {
    const moves = this.#moves;
    const [kind, place, trialPlace] = [moves.kinds[move], moves.places[move] ?? 0, moves.trials[move] ?? 0];
    if (kind === MoveKind.CREATE) this.#create(trialPlace, place);
    const trial = this.#byPlace[trialPlace];
    if (!trial) return;
    const limit = moves.limits.get(move);
    if (limit) this.#bracket(trial.bracket).thresholds.set(limit.rung, limit.threshold);
    switch (kind) {
      case MoveKind.COMPLETED:
        trial.metrics.set(place, moves.metrics[move] ?? NaN);
        trial.standing = "waits";
        break;
      case MoveKind.REPORTED:
        trial.metrics.set(trial.rung, moves.metrics[move] ?? NaN);
        break;
      case MoveKind.EXITED:
        trial.standing = "exited";
        break;
      case MoveKind.RETRIED:
        trial.standing = "trains";
        break;
      case MoveKind.TRAIN:
        if (!this.#byLength) this.#startLengths();
        this.#rise(trial, place);
        break;
      case MoveKind.PROMOTE:
        if (!this.#byLength) this.#rise(trial, place);
        break;
      case MoveKind.CLOSE:
        if (trial.standing !== "exited") trial.standing = "closed";
    }
  }

  #create(place: number, bracket: number): void {
    const trial: Placed = { key: this.#moves.keys[place] ?? "", bracket, rung: 0, standing: "trains", metrics: new Map() };
    this.#trials.push((this.#byPlace[place] = trial));
    const { rungs } = this.#bracket(bracket);
    if (!this.#byLength && !rungs.length) rungs.push(0);
  }

  /** Searches that give lengths have no other rungs. */
  #startLengths(): void {
    this.#byLength = true;
    for (const { rungs } of this.#brackets.values()) rungs.length = 0;
  }

  #rise(trial: Placed, rung: number): void {
    trial.rung = rung;
    trial.standing = "trains";
    const { rungs } = this.#bracket(trial.bracket);
    if (!rungs.includes(rung)) rungs.push(rung);
  }

  #bracket(number: number): Bracket {
    let found = this.#brackets.get(number);
    if (!found) this.#brackets.set(number, (found = { rungs: [], thresholds: new Map() }));
    return found;
  }
}
