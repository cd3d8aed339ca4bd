import { describe, expect, it } from "vitest";
import { readPlotOptions } from "$src/plots/options";
import { lineShapes } from "$src/exports/picture";
import { changedRanges, drawable, moved, readRange, readRanges, writtenRange, writtenRanges } from "$src/plots/ranges";
import { heightsRoom, TIME_STEPS } from "$src/plots/drawing";
import { duration } from "$src/ui/format";
import { acrossOf, roomOf } from "$src/plots/room";
import { closest, edgeMarks, pointsAt, unplotted, unplottedText } from "$src/plots/pointed";
import { around, epochsAt, isolated, lineOf, NO_POINTS, received, smoothed, type Curve, type Line } from "$src/curves/series";

const curve = (values: number[], steps = values.map((_, at) => at), times = steps): Curve => ({
  label: "a",
  color: "red",
  dash: [],
  points: { steps, values, times },
});

describe("series", () => {
  it("are appended to, and replaced after a reset", () => {
    const first = received(NO_POINTS, { reset: true, steps: [1, 2], values: [3, 4], times: [5, 6] });
    expect(received(first, { reset: false, steps: [3], values: [5], times: [7] }).steps).toEqual([1, 2, 3]);
    expect(received(first, { reset: true, steps: [9], values: [9], times: [9] }).steps).toEqual([9]);
  });

  it("have a stretch in more detail between its neighbours, which may be missing", () => {
    const whole = { steps: [0, 10, 20, 30], values: [0, 1, 2, 3], times: [5, 6, 7, 8] };
    const points = { steps: [10, 12, 19], values: [1, 9, 8], times: [6, 6, 6] };
    expect(around(whole, { range: [9, 19.5], points }).steps).toEqual([0, 10, 12, 19, 20]);
    expect(around(whole, { range: [9, 19.5], points }).values).toEqual([0, 1, 9, 8, 2]);
    expect(around(whole, { range: [-5, 99], points }).times).toEqual([6, 6, 6]);
    expect(around(whole, { range: [11, 12], points: NO_POINTS }).steps).toEqual([10, 20]);
  });

  it("have gaps where values are no numbers, and on a log scale where they are not positive", () => {
    const values = [1, NaN, 2, Infinity, -1];
    expect(lineOf(curve(values), { axis: "steps", smoothing: 0, log: false }).y).toEqual([1, null, 2, null, -1]);
    expect(lineOf(curve(values), { axis: "steps", smoothing: 0, log: true }).y).toEqual([1, null, 2, null, null]);
  });

  it("are smoothed without a bias towards zero, and without filling gaps", () => {
    expect(smoothed([5, 5, 5], 0.9).map((value) => Number(value.toFixed(9)))).toEqual([5, 5, 5]);
    expect(smoothed([1, NaN, 1], 0.5)[1]).toBeNaN();
    expect(smoothed([0, 10], 0.5)[1]).toBeCloseTo(6.667, 2);
  });

  it("show values that stand alone, whatever other curves have between them", () => {
    expect(isolated([1, null, 2, 3, null, 4])).toEqual([0, 5]);
    expect(isolated([1, undefined, 2, undefined, null, undefined, 3, undefined])).toEqual([6]);
    expect([isolated([]), isolated([null, undefined]), isolated([1, 2])]).toEqual([[], [], []]);
  });

  it("are placed by epochs, between those that are known and in proportion beyond them", () => {
    const epochs = { steps: [0, 10, 20], values: [0, 1, 3], times: [0, 0, 0] };
    expect(epochsAt(epochs, [5, 10, 15, 20, 40])).toEqual([0.5, 1, 2, 3, 6]);
    expect(epochsAt(NO_POINTS, [1, 2])).toEqual([]);
    const placed = { ...curve([7, 8, 9], [10, 20, 30]), across: epochs };
    expect(lineOf(placed, { axis: "epochs", smoothing: 0, log: false })).toMatchObject({ x: [1, 3, 4.5], y: [7, 8, 9] });
    expect(lineOf(curve([7, 8]), { axis: "epochs", smoothing: 0, log: false })).toMatchObject({ x: [], y: [] });
  });

  it("begin at zero by time, and keep the last point of one moment", () => {
    expect(lineOf(curve([1, 2, 3], [1, 2, 3], [100, 100, 104]), { axis: "time", smoothing: 0, log: false })).toMatchObject({ x: [0, 4], y: [2, 3] });
  });
});

describe("options of plots", () => {
  it("come back from the URL as they were written", () => {
    const heights = new Map([["validation/a~b, c", [0.25, 0.5] as const]]);
    const url: Record<string, string> = { axis: "training/lr", log: "1", smooth: "0.6", zoom: writtenRange([10, 20.5]), heights: writtenRanges(heights) };
    const more = { group: "lr", band: "range", color: "depth", also: "training%2Floss,training%2Floss,x", baseline: "12" };
    expect(readPlotOptions((name) => ({ ...url, ...more })[name] ?? "")).toEqual({
      axis: "metric",
      across: { group: "training", name: "lr" },
      log: true,
      smoothing: 0.6,
      range: [10, 20.5],
      heights,
      group: "lr",
      band: "range",
      color: "depth",
      also: [{ group: "training", name: "loss" }],
      baseline: 12n,
    });
  });

  it("are left out where the URL is wrong", () => {
    const url: Record<string, string> = { axis: "x", log: "yes", smooth: "2", zoom: "9~1", band: "?", baseline: "-1", heights: "a~1,b~~2" };
    expect(readPlotOptions((name) => url[name] ?? "")).toMatchObject({ axis: "steps", log: false, smoothing: 0, range: undefined, band: "std", baseline: undefined });
    expect(readRanges("lr~0.9~0.1,x,~1~2,a~~2").size).toBe(0);
  });
});

describe("ranges", () => {
  it("of a chart are changed one by one", () => {
    const ranges = changedRanges(new Map([["a", [0, 1] as const]]), "b", [2, 3]);
    expect(readRanges(writtenRanges(ranges))).toEqual(ranges);
    expect(changedRanges(ranges, "a", undefined)).toEqual(new Map([["b", [2, 3]]]));
  });

  it("move, and are made longer or shorter around a place", () => {
    expect(moved([0, 10], { by: 0.2 })).toEqual([2, 12]);
    expect(moved([0, 10], { length: 0.5 })).toEqual([2.5, 7.5]);
    expect(moved([0, 10], { length: 2, around: 0 })).toEqual([0, 20]);
    const [least, most] = moved([1, 100], { by: 0.5 }, { log: true });
    expect([least, most].map((one) => Number(one.toPrecision(6)))).toEqual([10, 1000]);
  });
});

describe("the place that is pointed at", () => {
  it("has the nearest point of each curve, largest value first", () => {
    const data = [[0, 1, 2, 3, 4], [5, undefined, null, undefined, 1], [undefined, undefined, 9, undefined, undefined], [null, null, null, null, null]];
    const lines = ["a", "b", "c"].map((label): Line => ({ label, color: "red", dash: [], x: [], y: [] }));
    expect(pointsAt(lines, data, 1).map(({ line, x, value }) => [line.label, x, value])).toEqual([["b", 2, 9], ["a", 0, 5]]);
    expect(pointsAt(lines, data, 3).map(({ line, x }) => [line.label, x])).toEqual([["b", 2], ["a", 4]]);
  });

  it("lists those around the pointer where not all have room", () => {
    const points = Array.from({ length: 30 }, (_, at) => ({ line: lineOf(curve([]), { axis: "steps", smoothing: 0, log: false }), x: 0, value: 30 - at }));
    expect(closest(points, 15, 5).map(({ value }) => value)).toEqual([17, 16, 15, 14, 13]);
    expect(closest(points, 99, 3).map(({ value }) => value)).toEqual([30, 29, 28]);
    expect(closest(points, -1, 3).map(({ value }) => value)).toEqual([3, 2, 1]);
  });

  it("says what no line shows", () => {
    const curves = [curve([1, NaN, Infinity, -1])];
    expect(unplottedText(unplotted(curves, true))).toBe("1 NaN, 1 infinite, 1 not above 0");
    expect(unplottedText(unplotted([curve([1, 2])], true))).toBe("");
    expect(edgeMarks(curves, "steps", 9)).toEqual([{ x: 1, isAbove: false, color: "red" }, { x: 2, isAbove: true, color: "red" }]);
    expect(edgeMarks(curves, "steps", 1)).toHaveLength(1);
  });
});

describe("a range that an axis cannot show", () => {
  it("is ignored where a logarithmic axis would begin at or below zero", () => {
    expect([drawable([-1, 5], { log: true }), drawable([0, 5], { log: true })]).toEqual([undefined, undefined]);
    expect([drawable([0.1, 5], { log: true }), drawable([-1, 5]), drawable(undefined)]).toEqual([[0.1, 5], [-1, 5], undefined]);
  });

  it("is ignored where numbers cannot tell its ticks apart", () => {
    expect(drawable([1e16, 1e16 + 2])).toBeUndefined();
    expect(drawable([1e-30, 2e-30])).toEqual([1e-30, 2e-30]);
    expect([readRange("-Infinity~1"), readRange("1~Infinity")]).toEqual([undefined, undefined]);
  });
});

describe("the room of a chart", () => {
  const [loss, accuracy, own] = ["training/loss", "training/accuracy", "mine/x"].map((label) => ({ group: label.split("/")[0] ?? "", name: label.split("/")[1] ?? "" })) as [Metric, Metric, Metric];
  type Metric = { group: string; name: string };

  it("is shared by metrics and their horizontal axes", () => {
    const steps = { axis: "steps", across: undefined } as const;
    expect(roomOf([loss], steps, 9).trials).toBe(500);
    expect(roomOf([loss, accuracy], steps, 9).trials).toBe(250);
    expect(roomOf([loss, accuracy], { axis: "metric", across: own }, 9).trials).toBe(166);
  });

  it("has all axes that tell epochs of few trials, and the likeliest of many", () => {
    const epochs = { axis: "epochs", across: undefined } as const;
    expect(acrossOf("mine", epochs)).toHaveLength(3);
    expect(roomOf([own], epochs, 125)).toEqual({ trials: 125, axes: Infinity });
    expect(roomOf([own], epochs, 126)).toEqual({ trials: 250, axes: 1 });
  });
});

it("pictures have a dot for a point between two gaps", () => {
  const line = { label: "a", color: "red", dash: [], x: [0, 1, 2, 3, 4], y: [1, null, 2, null, null] };
  const place = (x: number, y: number) => [x, y] as const;
  expect(lineShapes(line, place).map((one) => [one.kind, "at" in one && one.at])).toEqual([["dot", [0, 1]], ["dot", [2, 2]]]);
  expect(lineShapes({ ...line, y: [1, 2, null, 3, 4] }, place)).toMatchObject([{ kind: "line", points: [[0, 1], [1, 2]] }, { kind: "line", points: [[3, 3], [4, 4]] }]);
});

describe("an axis of time", () => {
  it("has ticks whose words have one unit, or few of the next", () => {
    expect(TIME_STEPS).toEqual([...TIME_STEPS].sort((one, other) => one - other));
    expect(TIME_STEPS.every((step) => duration(step).split(" ").length === 2)).toBe(true);
    expect(TIME_STEPS).not.toContain(100); // "1 min 40 s", as multiples of ten are
  });
});

it("an axis is as wide as its longest tick needs, beside its title", () => {
  expect([heightsRoom(null), heightsRoom(["0", "0.5"]), heightsRoom(["0", "750,000"])]).toEqual([52, 52, 65.5]);
});
