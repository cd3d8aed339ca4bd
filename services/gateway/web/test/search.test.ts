import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { LogEntrySchema, type LogEntry } from "$gen/resolute/api/searcher/v1/event_pb.js";
import { bestSoFar } from "$src/search/bestSoFar";
import { nextPosition } from "$src/search/playing";
import { boardAt, concerns } from "$src/search/replay";
import { pictures } from "$src/search/shelves";

const entry = (event: object, ...operations: object[]): LogEntry =>
  create(LogEntrySchema, { event: { kind: event }, operations } as Parameters<typeof create<typeof LogEntrySchema>>[1]);
const born = (trialKey: string, bracket = 0) => ({ kind: { case: "create", value: { trialKey, bracket } } });
const train = (trialKey: string, length: bigint, reason?: object) => ({ kind: { case: "validateAfter", value: { trialKey, length } }, reason });
const close = (trialKey: string, reason?: object) => ({ kind: { case: "close", value: { trialKey } }, reason });
const validated = (trialKey: string, metric: number, length: bigint) => ({ case: "validationCompleted", value: { trialKey, metric, length } });

const LOG = [
  entry({ case: "started", value: {} }, born("a"), train("a", 10n), born("b"), train("b", 10n)),
  entry(validated("a", 0.2, 10n), train("a", 40n, { rung: 0, threshold: 0.2 })),
  entry(validated("b", 0.9, 10n), close("b", { rung: 0, threshold: 0.2 })),
  entry({ case: "trialExited", value: { trialKey: "a" } }),
];
const standing = (count: number, key: string) => boardAt(LOG, count).trials.get(key)?.standing;

describe("the board of a search", () => {
  it("has each trial where it stood after some events", () => {
    expect(boardAt(LOG, 0).trials.size).toBe(0);
    expect([standing(1, "a"), standing(1, "b")]).toEqual(["trains", "trains"]);
    expect(boardAt(LOG, 2).trials.get("a")).toMatchObject({ rung: 40, standing: "trains" });
    expect([standing(3, "b"), standing(4, "a")]).toEqual(["closed", "exited"]);
  });

  it("has rungs by length, with what was last compared there", () => {
    const bracket = boardAt(LOG, 3).brackets.get(0);
    expect(bracket?.rungs).toEqual([10, 40]);
    expect(bracket?.thresholds.get(0)).toBe(0.2);
  });

  it("has numbered rungs where the search gives no lengths", () => {
    const up = { kind: { case: "promote", value: { trialKey: "a", rung: 1 } } };
    const log = [entry({ case: "started", value: {} }, born("a")), entry({ case: "validationReported", value: { trialKey: "a", metric: 0.5 } }, up)];
    const board = boardAt(log, 2);
    expect(board).toMatchObject({ byLength: false });
    expect(board.brackets.get(0)?.rungs).toEqual([0, 1]);
    expect(board.trials.get("a")).toMatchObject({ rung: 1, metrics: new Map([[0, 0.5]]) });
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
    const many = entry({ case: "started", value: {} }, ...Array.from({ length: 500 }, (_, at) => [born(`t${at}`), train(`t${at}`, 10n)]).flat());
    const [shelf] = pictures(boardAt([many], 1), true)[0]?.shelves ?? [];
    expect([shelf?.count, (shelf?.dots.length ?? 0) + (shelf?.hidden ?? 0)]).toEqual([500, 500]);
    expect(shelf?.hidden).toBeGreaterThan(0);
  });

  it("has a best value that only improves", () => {
    expect(bestSoFar(LOG, true).values).toEqual([0.2, 0.2]);
    expect(bestSoFar(LOG, false).values).toEqual([0.2, 0.2, 0.9, 0.9]);
    expect(bestSoFar(LOG.slice(0, 1), true).values).toEqual([]);
  });

  it("tells which entries concern a trial", () => {
    expect(LOG.map((one) => concerns(one, "b"))).toEqual([true, false, true, false]);
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
