import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CheckpointSchema, type Checkpoint } from "$gen/resolute/api/checkpoints/v1/checkpoint_pb.js";
import { ordered } from "$src/checkpoints/order";

const METRICS: Readonly<Record<string, number>> = { a: 0.9, b: Number.NaN, d: 0.1 };
const TRIALS: Readonly<Record<string, bigint>> = { a: 12n, b: 2n, c: 3n, d: 4n };
const one = (checkpointId: string, totalSize: number, keepReasons: string[] = []): Checkpoint =>
  create(CheckpointSchema, { checkpointId, totalSize: BigInt(totalSize), keepReasons });
const ALL = [one("a", 30, ["trial_best"]), one("b", 10), one("c", 20, ["trial_latest"]), one("d", 40)];
const ids = (text: string, by: string): string =>
  ordered(ALL, text, { by, metric: (one) => METRICS[one.checkpointId], trial: (one) => TRIALS[one.checkpointId] })
    .map(({ checkpointId }) => checkpointId)
    .join("");

test("checkpoints are sorted by what the table shows; those without a value come last either way", () => {
  expect(ids("", "")).toBe("abcd");
  expect(ids("", "size")).toBe("bcad");
  expect(ids("", "size desc")).toBe("dacb");
  expect(ids("", "metric")).toBe("dabc");
  expect(ids("", "metric desc")).toBe("adbc");
  expect(ids("", "trial")).toBe("bcda");
});

test("each word of a filter has to match", () => {
  expect(ids("best", "")).toBe("a");
  expect(ids("trial latest", "")).toBe("c");
  expect(ids("trial 4", "")).toBe("d");
  expect(ids("best latest", "")).toBe("");
});
