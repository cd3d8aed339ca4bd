// What differs between the compared trials, field by field.

import type { Value } from "$gen/resolute/api/common/v1/value_pb.js";
import { machineFacts, packageFacts } from "$src/api/environmentFacts";
import { leaves } from "$src/api/values";
import { rate, reportedSteps } from "$src/trial/pace";
import { shortNumber } from "$src/ui/format";
import type { Subject } from "./subjects.svelte";

export interface Row {
  readonly name: string;
  /** A text for each subject; nothing where it has no such field. */
  readonly values: readonly (string | undefined)[];
  readonly differs: boolean;
}

export interface Section {
  readonly title: string;
  readonly rows: readonly Row[];
}

type Fields = readonly (readonly [name: string, text: string])[];

/** Puts the fields of each subject side by side; names come in the order in which they are first met. */
export function sideBySide(title: string, fields: readonly Fields[]): Section {
  const maps = fields.map((one) => new Map(one));
  const names = [...new Set(fields.flatMap((one) => one.map(([name]) => name)))];
  const rows = names.map((name) => {
    const values = maps.map((one) => one.get(name));
    return { name, values, differs: values.some((value) => value !== values[0]) };
  });
  return { title, rows };
}

/** Results, hyperparameters, configs and environments of the subjects. */
export function sections(subjects: readonly Subject[]): Section[] {
  const of = (title: string, read: (subject: Subject) => Fields) => sideBySide(title, subjects.map(read));
  return [
    of("Result", results),
    of("Hyperparameters", ({ trial }) => leaves(trial.hparams)),
    of("Config", ({ experiment }) => leaves(without(experiment.config, "hyperparameters"))),
    of("Environment", ({ environment }) => (environment ? machineFacts(environment) : [])),
    of("Packages", ({ environment }) => (environment ? packageFacts(environment) : [])),
  ];
}

/** A map without one of its fields, which may be a large one. */
function without(map: Value | undefined, name: string): Value | undefined {
  if (map?.kind.case !== "mapValue") return map;
  const { [name]: _, ...fields } = map.kind.value.fields;
  return { ...map, kind: { case: "mapValue", value: { ...map.kind.value, fields } } };
}

function results({ trial, experiment }: Subject): Fields {
  const metric = experiment.searcherMetric || "metric";
  return [
    ["experiment", `${experiment.number} ${experiment.name}`],
    [`best ${metric}`, shortNumber(trial.bestValidation?.value)],
    ["at step", trial.bestValidation ? String(trial.bestValidation.steps) : "–"],
    ["steps", reportedSteps(trial)],
    ["rate", rate(trial) || "–"],
    ["restarts", String(trial.restarts)],
    ["seed", String(trial.seed)],
  ];
}
