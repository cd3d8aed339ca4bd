import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { type ListMovesResponse, ListMovesResponseSchema, MoveKind as Kind } from "$gen/resolute/api/searcher/v1/searcher_service_pb.js";
import { bestSoFar } from "$src/search/bestSoFar";
import { Moves } from "$src/search/moves";
import { nextPosition } from "$src/search/playing";
import { boardAt } from "$src/search/replay";
import { pictures } from "$src/search/shelves";

interface Move {
  kind: Kind;
  trial: string;
  place?: number;
  metric?: number;
  limit?: [rung: number, threshold: number];
}
const born = (trial: string, place = 0): Move => ({ kind: Kind.CREATE, trial, place });
const train = (trial: string, place: number, limit?: [number, number]): Move => ({ kind: Kind.TRAIN, trial, place, ...(limit && { limit }) });
const close = (trial: string, limit: [number, number]): Move => ({ kind: Kind.CLOSE, trial, limit });
const validated = (trial: string, metric: number, place: number): Move => ({ kind: Kind.COMPLETED, trial, metric, place });

/** An answer with some entries, as the server writes it. */
function page(entries: readonly (readonly Move[])[]): ListMovesResponse {
  const moves = entries.flat();
  const trialKeys = [...new Set(moves.map(({ trial }) => trial))];
  const limited = [...moves.keys()].filter((at) => moves[at]?.limit);
  return create(ListMovesResponseSchema, {
    times: entries.map((_, at) => at),
    moveCounts: entries.map(({ length }) => length),
    trialKeys,
    kinds: moves.map(({ kind }) => kind),
    trials: moves.map(({ trial }) => trialKeys.indexOf(trial)),
    metrics: moves.flatMap(({ metric }) => metric ?? []),
    places: moves.flatMap(({ place }) => place ?? []),
    thresholdMoves: limited,
    thresholdRungs: limited.map((at) => moves[at]?.limit?.[0] ?? 0),
    thresholds: limited.map((at) => moves[at]?.limit?.[1] ?? 0),
  });
}

function logOf(...pages: (readonly (readonly Move[])[])[]): Moves {
  const moves = new Moves();
  for (const one of pages) moves.add(page(one));
  return moves;
}

const ENTRIES = [
  [born("a"), train("a", 10), born("b"), train("b", 10)],
  [validated("a", 0.2, 10), train("a", 40, [0, 0.2])],
  [validated("b", 0.9, 10), close("b", [0, 0.2])],
  [{ kind: Kind.EXITED, trial: "a" }],
];
const LOG = logOf(ENTRIES);
const of = (count: number, key: string, log = LOG) => boardAt(log, count).trials.find((one) => one.key === key);
const standing = (count: number, key: string) => of(count, key)?.standing;

describe("the board of a search", () => {
  it("has each trial where it stood after some events", () => {
    expect(boardAt(LOG, 0).trials).toHaveLength(0);
    expect([standing(1, "a"), standing(1, "b")]).toEqual(["trains", "trains"]);
    expect(of(2, "a")).toMatchObject({ rung: 40, standing: "trains" });
    expect([standing(3, "b"), standing(4, "a")]).toEqual(["closed", "exited"]);
  });

  it("has rungs by length, with what was last compared there", () => {
    const bracket = boardAt(LOG, 3).brackets.get(0);
    expect(bracket?.rungs).toEqual([10, 40]);
    expect(bracket?.thresholds.get(0)).toBe(0.2);
  });

  it("has numbered rungs where the search gives no lengths", () => {
    const log = logOf([[born("a")], [{ kind: Kind.REPORTED, trial: "a", metric: 0.5 }, { kind: Kind.PROMOTE, trial: "a", place: 1 }]]);
    const board = boardAt(log, 2);
    expect(board).toMatchObject({ byLength: false });
    expect(board.brackets.get(0)?.rungs).toEqual([0, 1]);
    expect(board.trials[0]).toMatchObject({ rung: 1, metrics: new Map([[0, 0.5]]) });
  });

  it("is drawn with the best on top, and ghosts where trials went on", () => {
    const [picture] = pictures(boardAt(LOG, 3), true);
    const [low, high] = picture?.shelves ?? [];
    const at = (key: string) => low?.dots.find((dot) => dot.key === key);
    expect(at("a")).toMatchObject({ look: "went" });
    expect(at("b")).toMatchObject({ look: "closed" });
    expect(at("a")?.y).toBeLessThan(at("b")?.y ?? 0);
    expect(high?.dots).toHaveLength(1);
    expect(high?.line).toBeUndefined();
  });

  it("draws so many trials of a rung, and counts the others", () => {
    const many = Array.from({ length: 500 }, (_, at) => [born(`t${at}`), train(`t${at}`, 10)]).flat();
    const [shelf] = pictures(boardAt(logOf([many]), 1), true)[0]?.shelves ?? [];
    expect([shelf?.count, (shelf?.dots.length ?? 0) + (shelf?.hidden ?? 0)]).toEqual([500, 500]);
    expect(shelf?.hidden).toBeGreaterThan(0);
    const wide = Array.from({ length: 2000 }, (_, at) => [born(`t${at}`, at % 10), train(`t${at}`, 10)]).flat();
    const shelves = pictures(boardAt(logOf([wide]), 1), true).flatMap((one) => one.shelves);
    expect(shelves.map(({ count, hidden, dots }) => [count, hidden + dots.length])).toEqual(Array(10).fill([200, 200]));
    expect(shelves.reduce((sum, { dots }) => sum + dots.length, 0)).toBe(600);
  });

  it("has a best value that only improves", () => {
    expect(bestSoFar(LOG, 4, true).values).toEqual([0.2, 0.2]);
    expect(bestSoFar(LOG, 4, false).values).toEqual([0.2, 0.2, 0.9, 0.9]);
    expect(bestSoFar(LOG, 1, true).values).toEqual([]);
  });

  it("tells which entries concern a trial", () => {
    expect(LOG.entriesOf("b", 4)).toEqual([1, 3]);
    expect(LOG.entriesOf("a", 3)).toEqual([1, 2]);
    expect(LOG.entriesOf("unknown", 4)).toEqual([]);
  });

  it("is the same however its pages are cut", () => {
    const cut = logOf(ENTRIES.slice(0, 1), ENTRIES.slice(1, 3), ENTRIES.slice(3));
    expect([cut.length, cut.kinds, cut.trials, cut.limits]).toEqual([LOG.length, LOG.kinds, LOG.trials, LOG.limits]);
    for (const count of [1, 2, 3, 4]) expect(boardAt(cut, count)).toEqual(boardAt(LOG, count));
  });
});

describe("the clock of a replay", () => {
  it("shows what has happened by then", () => {
    expect(nextPosition([0, 100, 200, 900], { position: 1, time: 0 }, 250, 1)).toEqual({ position: 3, time: 250 });
  });

  it("cuts long waits short, and stops at the end", () => {
    const day = 86_400_000;
    expect(nextPosition([0, day], { position: 1, time: 0 }, 16, 10)).toEqual({ position: 1, time: day - 20_000 });
    expect(nextPosition([0, day], { position: 2, time: day }, 16, 10).position).toBe(2);
  });
});
