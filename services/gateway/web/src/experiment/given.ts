// What of a config somebody gave, as far as that can be known: the server keeps the completed one, without secrets.

import { create } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "$gen/resolute/api/common/v1/value_pb.js";
import { valueText } from "$src/api/values";

/** What every config says by itself. */
const OWN: readonly string[] = ["name", "entrypoint", "hyperparameters", "searcher.name", "searcher.metric", "searcher.max_length", "searcher.max_trials"];
const LEAST: readonly string[] = ["entrypoint", "name", ...OWN.filter((path) => path.startsWith("searcher."))];

const fieldsOf = (value: Value | undefined): Readonly<Record<string, Value>> => (value?.kind.case === "mapValue" ? value.kind.value.fields : {});
const mapOf = (fields: Record<string, Value>): Value => create(ValueSchema, { kind: { case: "mapValue", value: { fields } } });

/** The fields of a map that a test on their paths keeps; maps that keep nothing are left out. */
function kept(value: Value, keeps: (path: string, one: Value) => boolean, prefix = ""): Value {
  const fields: Record<string, Value> = {};
  for (const [name, one] of Object.entries(fieldsOf(value))) {
    const path = prefix + name;
    if (keeps(path, one)) fields[name] = one;
    else if (one.kind.case === "mapValue") {
      const inner = kept(one, keeps, `${path}.`);
      if (Object.keys(fieldsOf(inner)).length) fields[name] = inner;
    }
  }
  return mapOf(fields);
}

function at(value: Value | undefined, path: string): Value | undefined {
  return path.split(".").reduce<Value | undefined>((found, name) => fieldsOf(found)[name], value);
}

/** What differs from what this cluster fills in, beside what every config has. */
export function givenOf(config: Value, filled: Value): Value {
  const differs = (path: string, one: Value) => {
    const other = at(filled, path);
    if (one.kind.case === "mapValue" && other?.kind.case === "mapValue" && Object.keys(fieldsOf(one)).length) return false;
    return valueText(one) !== valueText(other);
  };
  return kept(config, (path, one) => (OWN.includes(path) ? valueText(one) !== "null" : differs(path, one)));
}

/** The same config with no more than it must say. */
export function leastOf(config: Value): Value {
  return kept(config, (path, one) => LEAST.includes(path) && valueText(one) !== "null");
}
