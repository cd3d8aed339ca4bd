import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { TrialSchema } from "$gen/resolute/api/experiments/v1/trial_pb.js";
import { axisOf, readAxes, readBrushes, writtenBrushes } from "$src/hparams/axes";
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

  it("of choices have them side by side", () => {
    const axis = axisOf("net", ["wide", "deep", 3]);
    expect(["3", "deep", "wide"].map((one) => axis.place(one))).toEqual([0, 0.5, 1]);
  });

  it("are named in the URL, each once", () => {
    expect(readAxes("lr,a%2Cb,lr,,%E0%A4%A")).toEqual(["lr", "a,b"]);
  });

  it("keep their brushes in the URL", () => {
    const brushes = new Map([["a~b,c", [0.25, 0.5] as const], ["lr", [0, 1] as const]]);
    expect(readBrushes(writtenBrushes(brushes))).toEqual(brushes);
    expect(readBrushes("lr~0.9~0.1,x").size).toBe(0);
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
