import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { JobSchema } from "$gen/resolute/api/experiments/v1/job_pb.js";
import { jobsAhead } from "$src/cluster/ahead";

test("who is ahead holds slots or wants some", () => {
  const job = (number: number, heldSlots: number, queuedTrials: number) =>
    create(JobSchema, { experimentNumber: BigInt(number), heldSlots, queuedTrials: BigInt(queuedTrials) });
  const jobs = [job(5, 2, 0), job(4, 0, 0), job(7, 0, 3), job(6, 0, 1), job(8, 1, 0)];
  expect(jobsAhead(jobs, 6n).map(({ experimentNumber }) => experimentNumber)).toEqual([5n, 7n]);
  expect(jobsAhead(jobs, 5n)).toEqual([]);
  expect(jobsAhead(jobs, 99n)).toEqual([]);
});
