import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { ValueSchema } from "$gen/resolute/api/common/v1/value_pb.js";
import { TrialSchema } from "$gen/resolute/api/experiments/v1/trial_pb.js";
import { axisOf, declaredScales, readAxes } from "$src/plots/axes";
import { cellsOf, partsOf } from "$src/hparams/cells";
import { importances } from "$src/hparams/importance";
import { samplesOf, varied, type Sample } from "$src/hparams/samples";

const sample = (number: number, metric: number, values: Record<string, number | string>): Sample => ({
  number: BigInt(number),
  metric,
  values: new Map(Object.entries(values)),
});

describe("samples", () => {
  const fields = { lr: { kind: { case: "doubleValue", value: 0.1 } }, net: { kind: { case: "stringValue", value: "deep" } } } as const;
  const trial = (number: bigint, value?: number) =>
    create(TrialSchema, {
      number,
      hparams: { kind: { case: "mapValue", value: { fields: { ...fields, depth: { kind: { case: "intValue", value: number } } } } } },
      ...(value === undefined ? {} : { bestValidation: { value } }),
    });

  it("are ordered by their results, and those without one come last", () => {
    const samples = samplesOf([trial(1n), trial(2n, 0.5), trial(3n, 0.2)], true);
    expect(samples.map(({ number }) => Number(number))).toEqual([3, 2, 1]);
    expect(samples[0]?.values).toEqual(new Map<string, unknown>([["depth", 3], ["lr", 0.1], ["net", "deep"]]));
    expect(varied(samples)).toEqual(["depth"]);
  });
});

describe("axes", () => {
  it("are linear, or logarithmic where numbers span much", () => {
    expect(axisOf("a", [0, 5, 10]).place(5)).toBe(0.5);
    expect(axisOf("lr", [1e-4, 1e-2, 1]).place(1e-2)).toBeCloseTo(0.5);
    expect(axisOf("one", [3, 3]).place(3)).toBe(0.5);
    expect(axisOf("a", [0, 10]).place(NaN)).toBeUndefined();
  });

  it("follow the declared scale", () => {
    expect(axisOf("dropout", [0.01, 1], "linear").place(0.505)).toBeCloseTo(0.5);
    expect(axisOf("lr", [0.1, 0.4], "log").place(0.2)).toBeCloseTo(0.5);
    const field = (type: string) => ({ kind: { case: "mapValue", value: { fields: { type: { kind: { case: "stringValue", value: type } } } } } }) as const;
    const map = (fields: Record<string, unknown>) => ({ kind: { case: "mapValue", value: { fields } } }) as const;
    const config = create(ValueSchema, map({ hyperparameters: map({ lr: field("log"), net: map({ dropout: field("double") }), kind: field("categorical") }) }) as never);
    expect([...declaredScales(config)]).toEqual([["lr", "log"], ["net.dropout", "linear"]]);
  });

  it("have round numbers between their ends", () => {
    expect(axisOf("a", [0.13, 0.97], "linear").ticks.map(({ text }) => text)).toEqual(["0.13", "0.2", "0.4", "0.6", "0.8", "0.97"]);
    expect(axisOf("lr", [0.0001234, 0.5], "log").ticks.map(({ text }) => text)).toEqual(["1.234e-4", "0.001", "0.01", "0.1", "0.5"]);
  });

  it("of choices have them side by side", () => {
    const axis = axisOf("net", ["wide", "deep", 3]);
    expect(["3", "deep", "wide"].map((one) => axis.place(one))).toEqual([0, 0.5, 1]);
  });

  it("are named in the URL, each once", () => {
    expect(readAxes("lr,a%2Cb,lr,,%E0%A4%A")).toEqual(["lr", "a,b"]);
  });
});

describe("importance", () => {
  // The order follows `x` alone; `noise` runs through its values without regard to it.
  const samples = Array.from({ length: 60 }, (_, at) => sample(at, at, { x: at * 0.1, noise: (at * 37) % 60, net: at % 2 ? "a" : "b" }));

  it("is large for what orders the trials, and small for what does not", () => {
    const [first, ...others] = importances(samples, ["noise", "x", "net"]);
    expect(first?.name).toBe("x");
    expect(first?.share).toBeGreaterThan(0.9);
    expect(first?.error).toBeLessThan(0.05);
    for (const { share } of others) expect(share).toBeLessThan(0.15);
  });

  it("is not told from few results", () => {
    expect(importances(samples.slice(0, 9), ["x"])).toEqual([]);
  });
});

describe("a heat map", () => {
  const samples = [sample(1, 0.5, { lr: 0.1, net: "a" }), sample(2, 0.7, { lr: 0.1, net: "a" }), sample(3, 0.9, { lr: 0.2, net: "b" }), sample(4, NaN, { lr: 0.2, net: "b" })];

  it("has the best and the mean of each cell", () => {
    const named = (name: string) => ({ name, parts: partsOf(name, samples.flatMap(({ values }) => values.get(name) ?? []), undefined) });
    const cells = cellsOf(samples, [named("lr"), named("net")], true);
    expect(cells.map(({ x, y, trials, best, mean }) => [x, y, trials, best, Number(mean.toFixed(9))])).toEqual([[0, 0, 2, 0.5, 0.6], [1, 1, 1, 0.9, 0.9]]);
    expect(named("net").parts.map(({ label }) => label)).toEqual(["a", "b"]);
  });

  it("has stretches of many numbers, by their scale, without empty ones", () => {
    const parts = partsOf("lr", [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 2, 3, 4], "log");
    expect(parts.map(({ label }) => label)).toEqual(["1e-5", "1e-4", "0.001", "0.01", "0.1", "1 to 4"]);
    expect(parts.filter(({ has }) => has(0.1))).toHaveLength(1);
  });
});
