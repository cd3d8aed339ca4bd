import { expect, test } from "vitest";
import { ExperimentKind } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import { commandSpec, eventsOfTrial, sourcesNamed, tensorboardSpec } from "$src/tasks/specs";

const place = { workspace: "vision", project: "first" };

test("numbers name experiments, and trials where a t is before them", () => {
  expect(sourcesNamed(" 7, t12  e8,T13 7")).toEqual({ experiments: [7n, 8n], trials: [12n, 13n] });
  expect(["", " , ", "x", "7 t", "0", "7;8", "9".repeat(19)].map(sourcesNamed)).toEqual(Array(7).fill(undefined));
});

test("a command is an experiment of one trial, whose name says what it runs", () => {
  const spec = commandSpec({ command: ` ${"a: 'b' ".repeat(40)}`, slots: 2, place });
  const config = JSON.parse(spec.configYaml ?? "") as Record<string, unknown>;
  expect(spec.kind).toBe(ExperimentKind.COMMAND);
  expect(config).toMatchObject({ ...place, max_restarts: 0, resources: { slots_per_trial: 2 }, searcher: { name: "single" } });
  expect(config["entrypoint"]).toBe("a: 'b' ".repeat(40).trim());
  expect(config["name"]).toMatch(/^Command \(a: 'b' .{93}…\)$/);
});

test("TensorBoard holds no slot and reads where events of trials are kept", () => {
  const path = eventsOfTrial("cluster", 7n, 12n);
  const spec = tensorboardSpec({ sources: [{ name: "trial 12", storage: { type: "shared_fs" }, path }], place });
  const config = JSON.parse(spec.configYaml ?? "") as Record<string, unknown>;
  expect(config).toMatchObject({ name: "TensorBoard (trial 12)", resources: { slots_per_trial: 0 } });
  expect(config["data"]).toEqual({ tensorboard: { sources: [{ name: "trial 12", storage: { type: "shared_fs" }, path: "cluster/tensorboard/experiment/7/trial/12" }] } });
});
