import { describe, expect, it } from "vitest";
import { readPlotOptions, writtenRange } from "$src/plots/options";
import { around, columns, epochsAt, isolated, NO_POINTS, received, smoothed, type Curve } from "$src/plots/series";

const curve = (values: number[], steps = values.map((_, at) => at), times = steps): Curve => ({
  label: "a",
  color: "red",
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
    expect(columns(curve(values), "steps", { smoothing: 0, log: false })[1]).toEqual([1, null, 2, null, -1]);
    expect(columns(curve(values), "steps", { smoothing: 0, log: true })[1]).toEqual([1, null, 2, null, null]);
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
    const placed = { ...curve([7, 8, 9], [10, 20, 30]), epochs };
    expect(columns(placed, "epochs", { smoothing: 0, log: false })).toEqual([[1, 3, 4.5], [7, 8, 9]]);
    expect(columns(curve([7, 8]), "epochs", { smoothing: 0, log: false })).toEqual([[], []]);
  });

  it("begin at zero by time, and keep the last point of one moment", () => {
    const [x, y] = columns(curve([1, 2, 3], [1, 2, 3], [100, 100, 104]), "time", { smoothing: 0, log: false });
    expect(x).toEqual([0, 4]);
    expect(y).toEqual([2, 3]);
  });
});

describe("options of plots", () => {
  it("come back from the URL as they were written", () => {
    const url: Record<string, string> = { axis: "time", log: "1", smooth: "0.6", zoom: writtenRange([10, 20.5]) };
    expect(readPlotOptions((name) => url[name] ?? "")).toEqual({ axis: "time", log: true, smoothing: 0.6, range: [10, 20.5] });
  });

  it("are left out where the URL is wrong", () => {
    const url: Record<string, string> = { axis: "x", log: "yes", smooth: "2", zoom: "9~1" };
    expect(readPlotOptions((name) => url[name] ?? "")).toEqual({ axis: "steps", log: false, smoothing: 0, range: undefined });
  });
});
