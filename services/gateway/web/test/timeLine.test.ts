import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { SignalReason } from "$gen/resolute/api/preemption/v1/signal_pb.js";
import { RunSchema } from "$gen/resolute/api/experiments/v1/run_pb.js";
import { TrialTransitionSchema } from "$gen/resolute/api/experiments/v1/trial_transition_pb.js";
import { barsOf, phasesOf, sharesOf } from "$src/trial/timeLine";

const at = (seconds: number) => timestampFromMs(seconds * 1000);
const changed = (seconds: number, event: string, run: number, signalReason = SignalReason.UNSPECIFIED) =>
  create(TrialTransitionSchema, { time: at(seconds), event, run, signalReason });

const RUNS = [
  create(RunSchema, { run: 1, startTime: at(4), initializeTime: at(7), endTime: at(22) }),
  create(RunSchema, { run: 2, startTime: at(30) }),
];
// The newest first, as the service lists them.
const TRANSITIONS = [
  changed(31, "CONFIRM_RUNNING", 2),
  changed(30, "PLACE", 2),
  changed(22, "RUN_RESUMES", 1),
  changed(20, "PREEMPT", 1, SignalReason.SCHEDULER),
  changed(5, "CONFIRM_RUNNING", 1),
  changed(4, "PLACE", 1),
  changed(1, "CREATE", 0),
];

describe("the phases of runs", () => {
  it("are those that the services recorded", () => {
    const shown = phasesOf(RUNS, TRANSITIONS, 40_000).map(({ run, name, begin, end }) => [run, name, begin / 1000, end / 1000]);
    expect(shown).toEqual([
      [1, "queue", 1, 4],
      [1, "start", 4, 5],
      [1, "imports", 5, 7],
      [1, "train", 7, 20],
      [1, "preemption", 20, 22],
      [2, "queue", 22, 30],
      [2, "start", 30, 31],
      [2, "train", 31, 40],
    ]);
  });

  it("are left out where nothing was recorded", () => {
    expect(phasesOf(RUNS, [], 40_000).map(({ name }) => name)).toEqual(["start", "start"]);
    expect(phasesOf([create(RunSchema, { run: 1 })], TRANSITIONS, 40_000)).toEqual([]);
  });

  it("lie on the axis of their runs", () => {
    expect(barsOf(RUNS, 0, 40_000).map(({ from, to }) => [from, to])).toEqual([
      [0.1, 0.55],
      [0.75, 1],
    ]);
    expect(sharesOf(-5, 50, 0, 40)).toEqual({ from: 0, to: 1 });
  });
});
