import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { ValueSchema } from "$gen/resolute/api/common/v1/value_pb.js";
import { ContinuationSchema } from "$gen/resolute/api/experiments/v1/continuation_pb.js";
import { newRequestId } from "$src/api/requestId";
import { keptText } from "$src/steer/kept";
import { lineOf, yamlOf } from "$src/steer/yaml";

describe("configs as YAML", () => {
  it("have their fields by name, with texts quoted", () => {
    const text = (value: string) => ({ kind: { case: "stringValue", value } }) as const;
    const value = create(ValueSchema, {
      kind: {
        case: "mapValue",
        value: {
          fields: {
            name: text("a: b"),
            labels: { kind: { case: "listValue", value: { values: [text("x")] } } },
            searcher: { kind: { case: "mapValue", value: { fields: { max_length: { kind: { case: "intValue", value: 9n } } } } } },
            "odd key": { kind: { case: "mapValue", value: { fields: {} } } },
          },
        },
      },
    });
    expect(yamlOf(value)).toBe('labels:\n  - "x"\nname: "a: b"\n"odd key": {}\nsearcher:\n  max_length: 9\n');
  });

  it("have faults at their lines", () => {
    const yaml = "name: x\nsearcher:\n  metric: loss\n  max_trials: -1\nother:\n  metric: y\n";
    expect(lineOf(yaml, "searcher.max_trials")).toBe(4);
    expect(lineOf(yaml, "other.metric")).toBe(6);
    expect(lineOf(yaml, "searcher.name")).toBe(2);
    expect(lineOf(yaml, "line 3, column 1")).toBe(3);
    expect(lineOf(yaml, "resources.slots")).toBeUndefined();
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
