// Values of hyperparameters and metadata.

import type { Value } from "$gen/resolute/api/common/v1/value_pb.js";
import { shortNumber } from "$src/ui/format";

/** A value as text; maps and lists in the manner of JSON. */
export function valueText(value: Value | undefined): string {
  const kind = value?.kind;
  switch (kind?.case) {
    case "doubleValue":
      return shortNumber(kind.value);
    case "intValue":
    case "boolValue":
      return String(kind.value);
    case "stringValue":
      return kind.value;
    case "listValue":
      return `[${kind.value.values.map(valueText).join(", ")}]`;
    case "mapValue":
      return `{${Object.entries(kind.value.fields)
        .map(([name, one]) => `${name}: ${valueText(one)}`)
        .join(", ")}}`;
    default:
      return "null";
  }
}

/** The values of a map that are no maps, by their dotted names, in the order of the names. */
export function leafValues(value: Value | undefined, prefix = ""): [name: string, value: Value][] {
  if (value?.kind.case !== "mapValue") return [];
  return Object.entries(value.kind.value.fields)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([name, one]): [string, Value][] =>
      one.kind.case === "mapValue" ? leafValues(one, `${prefix}${name}.`) : [[prefix + name, one]],
    );
}

/** The same as text. */
export const leaves = (value: Value | undefined): [name: string, text: string][] =>
  leafValues(value).map(([name, one]) => [name, valueText(one)]);

/** A number where a value is one, its text otherwise. */
export function numberOrText(value: Value): number | string {
  const { kind } = value;
  if (kind.case === "doubleValue") return kind.value;
  return kind.case === "intValue" ? Number(kind.value) : valueText(value);
}
