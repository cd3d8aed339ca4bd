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

/** The leaves of a map by their dotted names, in the order of the names. */
export function leaves(value: Value | undefined, prefix = ""): [name: string, text: string][] {
  if (value?.kind.case !== "mapValue") return [];
  return Object.entries(value.kind.value.fields)
    .sort(([a], [b]) => a.localeCompare(b))
    .flatMap(([name, one]) =>
      one.kind.case === "mapValue" ? leaves(one, `${prefix}${name}.`) : [[prefix + name, valueText(one)] as [string, string]],
    );
}
