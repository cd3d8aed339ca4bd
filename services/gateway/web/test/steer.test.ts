import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { ValueSchema } from "$gen/resolute/api/common/v1/value_pb.js";
import { ContinuationSchema } from "$gen/resolute/api/experiments/v1/continuation_pb.js";
import { newRequestId } from "$src/api/requestId";
import { keptText } from "$src/steer/kept";
import { parse } from "yaml";
import { lineOf, placeOf, yamlOf } from "$src/steer/yaml";

describe("configs as YAML", () => {
  const text = (value: string) => ({ kind: { case: "stringValue", value } }) as const;
  const number = (value: number) => ({ kind: { case: "doubleValue", value } }) as const;
  const map = (fields: Record<string, unknown>) => ({ kind: { case: "mapValue", value: { fields } } }) as const;

  it("have what is changed most first, and read back as the same values", () => {
    const config = {
      bind_mounts: { kind: { case: "listValue", value: { values: [text("1e3"), text("no"), text("a\nb")] } } },
      "odd: key": map({}),
      searcher: map({ max_length: { kind: { case: "intValue", value: 9n } }, metric: text("true") }),
      hyperparameters: map({ rate: number(1), small: number(1e-7), none: { kind: { case: "nullValue", value: 0 } } }),
      name: text("a: b # c"),
    };
    const written = yamlOf(create(ValueSchema, map(config) as never));
    expect(written).toContain("rate: 1.0\n");
    expect(Object.keys(parse(written) as object)).toEqual(["name", "hyperparameters", "searcher", "bind_mounts", "odd: key"]);
    expect(parse(written)).toEqual({
      name: "a: b # c",
      hyperparameters: { rate: 1, small: 1e-7, none: null },
      searcher: { max_length: 9, metric: "true" },
      bind_mounts: ["1e3", "no", "a\nb"],
      "odd: key": {},
    });
  });

  it("have faults at their places", () => {
    const yaml = "name: x\nsearcher: {metric: loss, max_trials: -1}\nother:\n  a.b:\n    - c: 1\n    - c: 2\n      d: y\n  bad: [\n";
    const at = (path: string) => {
      const place = placeOf(yaml, path);
      return place && [lineOf(yaml, place), yaml.slice(place.from, place.to)];
    };
    expect(at("searcher.max_trials")).toEqual([2, "max_trials"]);
    expect(at("searcher.name")).toEqual([2, "searcher"]);
    expect(at("other.a.b[1].d")).toEqual([7, "d"]);
    expect(at("other.a.b[7].d")).toEqual([4, "a.b"]);
    expect(at("line 3, column 1")).toEqual([3, "other:"]);
    expect(at("line 99, column 1")).toEqual([9, ""]);
    expect(at("resources.slots")).toBeUndefined();
  });
});

describe("a continuation", () => {
  it("is told by what it keeps", () => {
    const plan = create(ContinuationSchema, { trials: [{ trial: { number: 3n }, keepsWeights: true, keepsSteps: false }], keepsSearch: true, maxTrials: 8n });
    expect(keptText(plan)).toEqual([
      "Trial 3 keeps its weights and counts steps from zero.",
      "The decisions of the search so far stay.",
      "The search has 8 trials from now on.",
    ]);
  });

  it("is asked for by a UUID", () => {
    expect(newRequestId()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });
});
