import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type Value, ValueSchema } from "$gen/resolute/api/common/v1/value_pb.js";
import { givenOf } from "$src/experiment/given";
import { yamlOf } from "$src/steer/yaml";

function value(of: unknown): Value {
  if (typeof of === "number") return create(ValueSchema, { kind: { case: "intValue", value: BigInt(of) } });
  if (typeof of === "string") return create(ValueSchema, { kind: { case: "stringValue", value: of } });
  if (of === null) return create(ValueSchema, { kind: { case: "nullValue", value: 0 } });
  const fields = Object.fromEntries(Object.entries(of as object).map(([name, one]) => [name, value(one)]));
  return create(ValueSchema, { kind: { case: "mapValue", value: { fields } } });
}

test("what was given is what every config says and what differs from what the cluster fills in", () => {
  const filled = value({ name: "n", max_restarts: 5, resources: { slots_per_trial: 1, priority: 42 }, searcher: { name: "single", metric: "loss", divisor: 4, max_trials: null } });
  const config = value({ name: "n", max_restarts: 2, resources: { slots_per_trial: 1, priority: 10 }, searcher: { name: "single", metric: "loss", divisor: 4, max_trials: null }, hyperparameters: { lr: 1 } });
  expect(yamlOf(givenOf(config, filled))).toBe(
    "name: n\nhyperparameters:\n  lr: 1\nsearcher:\n  metric: loss\n  name: single\nresources:\n  priority: 10\nmax_restarts: 2\n",
  );
});
