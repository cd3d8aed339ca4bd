// Where the trials of a search stood after some of its events, derived from its log.

import type { LogEntry } from "$gen/resolute/api/searcher/v1/event_pb.js";
import type { Operation } from "$gen/resolute/api/searcher/v1/operation_pb.js";

/** What a trial does: it trains, waits for a decision, was closed by the search, or exited before that. */
export type Standing = "trains" | "waits" | "closed" | "exited";

export interface Placed {
  readonly key: string;
  bracket: number;
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
  readonly trials: Map<string, Placed>;
  readonly brackets: Map<number, Bracket>;
  /** Whether rungs are lengths that trials are trained to. */
  byLength: boolean;
}

/** The trial that an event is of; empty for none. */
export function eventTrial({ event }: LogEntry): string {
  const value = event?.kind.value;
  return value && "trialKey" in value ? value.trialKey : "";
}

/** The trial that a decision is about; empty for none. */
export function operationTrial({ kind }: Operation): string {
  return kind.value && "trialKey" in kind.value ? kind.value.trialKey : "";
}

/** Whether an entry says anything about a trial. */
export const concerns = (entry: LogEntry, key: string): boolean =>
  eventTrial(entry) === key || entry.operations.some((one) => operationTrial(one) === key);

/** The board after the first entries of a log. */
export function boardAt(entries: readonly LogEntry[], count: number): Board {
  const board: Board = { trials: new Map(), brackets: new Map(), byLength: false };
  for (let at = 0; at < count; at += 1) {
    const entry = entries[at];
    if (!entry) break;
    takeEvent(board, entry);
    for (const operation of entry.operations) takeOperation(board, operation);
  }
  for (const { rungs } of board.brackets.values()) rungs.sort((a, b) => a - b);
  return board;
}

function takeEvent(board: Board, entry: LogEntry): void {
  const trial = board.trials.get(eventTrial(entry));
  const kind = entry.event?.kind;
  if (!trial || !kind) return;
  if (kind.case === "validationCompleted") {
    trial.metrics.set(Number(kind.value.length), kind.value.metric);
    trial.standing = "waits";
  } else if (kind.case === "validationReported") {
    trial.metrics.set(trial.rung, kind.value.metric);
  } else if (kind.case === "trialExited") {
    trial.standing = "exited";
  } else if (kind.case === "retried") {
    trial.standing = "trains";
  }
}

function takeOperation(board: Board, { kind, reason }: Operation): void {
  if (kind.case === "create") create(board, kind.value.trialKey, kind.value.bracket);
  const key = kind.value && "trialKey" in kind.value ? kind.value.trialKey : "";
  const trial = board.trials.get(key);
  if (!trial) return;
  const bracket = bracketOf(board, trial.bracket);
  if (reason?.rung !== undefined && reason.threshold !== undefined) bracket.thresholds.set(reason.rung, reason.threshold);
  if (kind.case === "validateAfter") {
    if (!board.byLength) startLengths(board);
    rise(bracket, trial, Number(kind.value.length));
  } else if (kind.case === "promote" && !board.byLength) {
    rise(bracket, trial, kind.value.rung);
  } else if ((kind.case === "close" || kind.case === "stop") && trial.standing !== "exited") {
    trial.standing = "closed";
  }
}

function create(board: Board, key: string, bracket: number): void {
  board.trials.set(key, { key, bracket, rung: 0, standing: "trains", metrics: new Map() });
  const { rungs } = bracketOf(board, bracket);
  if (!board.byLength && !rungs.length) rungs.push(0);
}

/** Searches that give lengths have no other rungs. */
function startLengths(board: Board): void {
  board.byLength = true;
  for (const { rungs } of board.brackets.values()) rungs.length = 0;
}

function rise(bracket: Bracket, trial: Placed, rung: number): void {
  trial.rung = rung;
  trial.standing = "trains";
  if (!bracket.rungs.includes(rung)) bracket.rungs.push(rung);
}

function bracketOf(board: Board, number: number): Bracket {
  let found = board.brackets.get(number);
  if (!found) board.brackets.set(number, (found = { rungs: [], thresholds: new Map() }));
  return found;
}
