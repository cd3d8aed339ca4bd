import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { SlotSchema } from "$gen/resolute/api/experiments/v1/cluster_service_pb.js";
import { TrialSchema } from "$gen/resolute/api/experiments/v1/trial_pb.js";
import { sparkPoints, whereOf } from "$src/now/running";

test("where a trial runs is said by the nodes of its slots, and by pools where there are several", () => {
  const slot = (node: number, trialNumber: number, resourcePool = "") =>
    create(SlotSchema, { node, resourcePool, ...(trialNumber ? { holder: { trialNumber: BigInt(trialNumber) } } : {}) });
  const trials = [create(TrialSchema, { number: 7n })];
  expect(whereOf(trials, [slot(0, 7), slot(0, 7), slot(1, 7), slot(2, 8), slot(3, 0)])).toBe("node 0, node 1");
  expect(whereOf(trials, [slot(0, 8), slot(1, 7, "gpu")])).toBe("node 1 of pool gpu");
  expect(whereOf(trials, [slot(0, 8)])).toBe("");
});

test("a small line fills its box from the left to the right, and lies at its foot where nothing changes", () => {
  expect(sparkPoints([1, 3, 2], 64, 18)).toBe("0.0,18.0 32.0,0.0 64.0,9.0");
  expect(sparkPoints([5, 5], 64, 18)).toBe("0.0,18.0 64.0,18.0");
});
