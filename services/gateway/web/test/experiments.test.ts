import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { ExperimentSchema, ExperimentState } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import { RunSchema } from "$gen/resolute/api/experiments/v1/run_pb.js";
import { TrialSchema, TrialState } from "$gen/resolute/api/experiments/v1/trial_pb.js";
import { OperationSchema } from "$gen/resolute/api/searcher/v1/operation_pb.js";
import { ReasonKind } from "$gen/resolute/api/searcher/v1/reason_pb.js";
import { Describer } from "$src/search/describe";
import { trialShown } from "$src/api/states";
import { chosenValue, metricColumn, MOST_METRIC_COLUMNS, readMetricColumns } from "$src/columns/metricColumn";
import { bestFirst, serverOrder, wantedCount } from "$src/experiment/ranking";
import { allFailed, summary, withoutCurves } from "$src/experiment/summary";
import { chosenColumns, USUAL, written } from "$src/experiments/columns";
import { aboutSteps, reportedSteps, spent } from "$src/trial/pace";
import { timeLeft } from "$src/ui/format";
import { changedQuery, placesOf, viewOf } from "$src/frame/location";
import { barsOf } from "$src/trial/timeLine";
import { bytes, duration, shortNumber } from "$src/ui/format";

describe("trials", () => {
  it("are ordered by the server, in the words of the table", () => {
    expect([serverOrder("best desc"), serverOrder("steps"), serverOrder("nonsense desc")]).toEqual([
      "best_validation desc",
      "reported_steps",
      "number desc",
    ]);
    expect([bestFirst(true), bestFirst(false)]).toEqual(["best", "best desc"]);
  });

  it("tell how far they are, how fast, and where their time went", () => {
    const at = (seconds: number) => timestampFromMs(seconds * 1000);
    const waiting = create(TrialSchema, { createTime: at(0), endTime: at(592) });
    expect([reportedSteps(waiting), spent(waiting, 999_000)]).toEqual(["–", "ran 0 s, waited 9 min 52 s"]);
    const trains = create(TrialSchema, {
      createTime: at(0), runStartTime: at(237), runSeconds: 3, reportedSteps: 1840n, reportTime: at(230), stepsPerSecond: 12.25,
    });
    expect([reportedSteps(trains), spent(trains, 240_000)]).toEqual(["1,840", "ran 6 s, waited 3 min 54 s"]);
    // The cluster was down for an hour between two stretches.
    const resumed = create(ExperimentSchema, { createTime: at(0), startTime: at(10), runSeconds: 20, runStartTime: at(3630) });
    expect(spent(resumed, 3_640_000)).toBe("ran 30 s, waited 1 h");
    expect(aboutSteps(trains, 240_000)).toBe("reported 10 s ago, 12.25 steps/s");
    expect([timeLeft(at(500), 240_000), timeLeft(at(200), 240_000), timeLeft(undefined, 0)]).toEqual(["about 4 min", "any moment", ""]);
  });

  it("are wanted by number or by share", () => {
    expect([wantedCount("", 50, 200), wantedCount("3", 50, 200), wantedCount("25%", 50, 200), wantedCount("900", 50, 200), wantedCount("0%", 50, 200)]).toEqual([
      10, 3, 13, 200, 1,
    ]);
  });

  it("are counted by what they do, beside the best one", () => {
    const trialStateCounts = [
      { state: TrialState.RUNNING, count: 1n },
      { state: TrialState.STARTING, count: 1n },
      { state: TrialState.COMPLETED, count: 7n },
    ];
    const experiment = create(ExperimentSchema, { trialStateCounts, trialCount: 9n, searcherName: "random", searcherMetric: "loss" });
    expect(summary(experiment, undefined)).toBe("Search random, 9 trials: 2 running, 7 completed.");
    const best = create(TrialSchema, { number: 4n, bestValidation: { value: 0.25, steps: 92n } });
    expect(summary(experiment, best)).toContain(" Best loss 0.25 by trial 4 at step 92.");
    const canceled = { trialStateCounts: [{ state: TrialState.CANCELED, count: 2n }], trialCount: 2n };
    const ended = [false, true].map((killed) => summary(create(ExperimentSchema, { ...canceled, killed }), undefined));
    expect(ended).toEqual(["Search none, 2 trials: 2 canceled.", "Search none, 2 trials: 2 killed."]);
    expect([false, true].map((killed) => trialShown({ state: TrialState.CANCELED, killed }).word)).toEqual(["canceled", "killed"]);
  });
});

describe("an experiment without curves", () => {
  const [failed, canceled, active] = [ExperimentState.ERROR, ExperimentState.CANCELED, ExperimentState.ACTIVE].map((state) => create(ExperimentSchema, { state }));
  const silent = create(TrialSchema, {});
  const reports = create(TrialSchema, { reportedSteps: 3n });

  it("says why, once it has ended and no trial has reported anything", () => {
    if (!failed || !canceled || !active) throw new Error("there are three");
    expect(withoutCurves(failed, [silent])).toBe("It failed before it reported any metric.");
    expect(withoutCurves(canceled, [silent])).toBe("It ended before it reported any metric.");
    expect(withoutCurves(canceled, [])).toBe("It ended before any trial started.");
    expect([withoutCurves(active, [silent]), withoutCurves(failed, [silent, reports]), withoutCurves(failed, undefined)]).toEqual(["", "", ""]);
  });

  it("repeats no reason of its trials where all have failed", () => {
    const of = (count: bigint) => create(ExperimentSchema, { trialCount: 3n, trialStateCounts: [{ state: TrialState.ERROR, count }] });
    expect([allFailed(of(3n)), allFailed(of(2n))]).toEqual([true, false]);
  });
});

describe("a decision of a search", () => {
  it("is told with its numbers", () => {
    const kind = { case: "close", value: { trialKey: "k" } } as const;
    const reason = { kind: ReasonKind.BELOW_TOP_OF_RUNG, rung: 1, rank: 3n, rankOf: 9n, metric: 0.25, threshold: 0.125 };
    expect(new Describer(new Map([["k", 4n]]), "loss").operation(create(OperationSchema, { kind, reason }))).toBe(
      "Close trial 4: it is not among the best of its rung, place 3 of 9, rung 2, loss 0.25, threshold 0.125",
    );
  });
});

describe("addresses", () => {
  it("name views", () => {
    expect(viewOf("")).toEqual({ name: "experiments" });
    expect(viewOf("trials/12")).toEqual({ name: "trial", number: 12n });
    expect(viewOf("experiments/7/")).toEqual({ name: "experiment", number: 7n });
    expect(viewOf("det/experiments/7/overview")).toEqual({ name: "moved", kind: "experiment", number: 7n });
    expect(viewOf("det/experiments/7/trials/9/logs")).toEqual({ name: "moved", kind: "trial", number: 9n });
    expect(viewOf("det/trials/9")).toEqual({ name: "moved", kind: "trial", number: 9n });
    expect(viewOf("trials/0")).toEqual({ name: "unknown", path: "trials/0" });
  });

  it("are found by numbers", () => {
    expect(placesOf("12").map(({ path }) => path)).toEqual(["experiments/12", "trials/12"]);
    expect(placesOf(" T 7 ").map(({ path }) => path)).toEqual(["trials/7"]);
    expect([...placesOf("0"), ...placesOf("net 7")]).toEqual([]);
  });

  it("leave out what has no value", () => {
    expect(changedQuery(new URLSearchParams("a=1&b=2"), { a: "", c: "x y" })).toBe("?b=2&c=x+y");
    expect(changedQuery(new URLSearchParams("a=1"), { a: undefined })).toBe("");
  });
});

describe("numbers", () => {
  it("have four significant digits", () => {
    expect([0.98123456, 1234567, 1e-7, 12, NaN, undefined].map(shortNumber)).toEqual(["0.9812", "1.235 M", "1e-7", "12", "NaN", "–"]);
    expect([4e9, -2.5e12, 1e15].map(shortNumber)).toEqual(["4 G", "-2.5 T", "1e15"]);
  });

  it("have units that people read", () => {
    expect([0, 59, 61, 3600, 90_000].map(duration)).toEqual(["0 s", "59 s", "1 min 1 s", "1 h", "1 d 1 h"]);
    expect([0n, 1023n, 1536n, 5n * 1024n ** 3n].map(bytes)).toEqual(["0 B", "1023 B", "1.5 KiB", "5 GiB"]);
  });
});

describe("columns", () => {
  const ids = (list: string) => chosenColumns(list).map(({ id }) => id);

  it("are the usual ones unless others are chosen", () => {
    expect(ids("")).toContain("state");
    expect(ids("")).not.toContain("workspace");
    expect(ids("workspace,nothing,best")).toEqual(["best", "workspace"]);
  });

  it("may show a value of any metric, whatever its name has in it", () => {
    const column = metricColumn({ group: "validation", name: "a,b/c %" }, "max");
    const shown = chosenColumns(`state,${column.id},min:nothing,median:x%2Fy,last:%E0%A4%A,last:t%2Floss`);
    expect(shown.map(({ label }) => label)).toEqual(["State", "max validation/a,b/c %", "last t/loss"]);
    expect(chosenColumns(written(shown))).toEqual(shown);
    expect(shown[1]?.metric?.metric).toEqual({ group: "validation", name: "a,b/c %" });
    const many = Array.from({ length: 20 }, (_, at) => metricColumn({ group: "g", name: String(at) }, "last").id);
    expect(readMetricColumns([...many, many[0]].join(","))).toHaveLength(MOST_METRIC_COLUMNS);
  });

  it("of a metric show its smallest, largest or last value", () => {
    const summary = { min: 1, max: 5, lastNumber: NaN };
    expect([chosenValue(summary, "min"), chosenValue(summary, "max"), chosenValue(summary, "last")]).toEqual([1, 5, NaN]);
    expect(chosenValue({}, "min")).toBeUndefined();
  });

  it("can all be left out", () => {
    expect(ids(written([]))).toEqual([]);
    expect(written(chosenColumns(""))).toBe(USUAL);
  });
});

describe("the time line of a trial", () => {
  const at = (seconds: bigint) => ({ seconds, nanos: 0 });

  it("has a bar for each run, and one that goes on to its end", () => {
    const runs = [create(RunSchema, { run: 1, startTime: at(110n), endTime: at(120n) }), create(RunSchema, { run: 2, startTime: at(150n) })];
    expect(barsOf(runs, 100_000, 200_000).map(({ run, from, to }) => [run.run, from, to])).toEqual([
      [1, 0.1, 0.2],
      [2, 0.5, 1],
    ]);
  });
});
