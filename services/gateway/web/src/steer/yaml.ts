// Configs as YAML, and where in a text a field is.

import type { Value } from "$gen/resolute/api/common/v1/value_pb.js";

/** A value as YAML. Texts are quoted as in JSON, which YAML reads the same. */
export function yamlOf(value: Value | undefined, indent = ""): string {
  const kind = value?.kind;
  if (kind?.case === "mapValue") {
    const entries = Object.entries(kind.value.fields).sort(([a], [b]) => a.localeCompare(b));
    return entries.map(([name, one]) => `${indent}${key(name)}:${below(one, indent)}`).join("");
  }
  if (kind?.case === "listValue") return kind.value.values.map((one) => `${indent}-${below(one, indent)}`).join("");
  return `${scalar(value)}\n`;
}

const key = (name: string): string => (/^[A-Za-z_][\w.-]*$/.test(name) ? name : JSON.stringify(name));

function below(value: Value, indent: string): string {
  const { kind } = value;
  const isEmpty =
    (kind.case === "mapValue" && !Object.keys(kind.value.fields).length) || (kind.case === "listValue" && !kind.value.values.length);
  if (isEmpty) return kind.case === "mapValue" ? " {}\n" : " []\n";
  if (kind.case === "mapValue" || kind.case === "listValue") return `\n${yamlOf(value, `${indent}  `)}`;
  return ` ${scalar(value)}\n`;
}

function scalar(value: Value | undefined): string {
  const kind = value?.kind;
  switch (kind?.case) {
    case "stringValue":
      return JSON.stringify(kind.value);
    case "doubleValue":
      return Number.isFinite(kind.value) ? String(kind.value) : Number.isNaN(kind.value) ? ".nan" : kind.value > 0 ? ".inf" : "-.inf";
    case "intValue":
    case "boolValue":
      return String(kind.value);
    default:
      return "null";
  }
}

/**
 * The line, from 1, on which a text has a field; the line of the nearest field above it where the text lacks it.
 *
 * @param path Such as "searcher.max_length" or "line 3, column 7", as the server names faults.
 */
export function lineOf(yaml: string, path: string): number | undefined {
  const said = /^line (\d+)/.exec(path);
  if (said) return Number(said[1]);
  const lines = yaml.split("\n");
  let [found, from, outer] = [undefined as number | undefined, 0, -1];
  for (const part of path.split(/[.[\]]+/).filter(Boolean)) {
    const at = lines.findIndex((line, index) => index >= from && indentOf(line) > outer && line.trim().replace(/^- /, "").startsWith(`${part}:`));
    if (at < 0) break;
    [found, from, outer] = [at + 1, at + 1, indentOf(lines[at] ?? "")];
  }
  return found;
}

const indentOf = (line: string): number => line.length - line.trimStart().length;
