// Configs as YAML, and where in a text a field is.

import { Document, isMap, isScalar, isSeq, parseDocument, Pair, Scalar, YAMLMap, YAMLSeq, type Node } from "yaml";
import type { Value } from "$gen/resolute/api/common/v1/value_pb.js";

/** What people change most comes first. */
const FIRST = ["name", "description", "entrypoint", "hyperparameters", "searcher", "resources"];

/** A config as YAML: some fields first, the others by their names. */
export const yamlOf = (config: Value): string => new Document(nodeOf(config, FIRST)).toString({ lineWidth: 0 });

function nodeOf({ kind }: Value, first: readonly string[] = []): Node {
  switch (kind.case) {
    case "mapValue": {
      const map = new YAMLMap();
      const rank = (name: string): number => (first.includes(name) ? first.indexOf(name) : first.length);
      const entries = Object.entries(kind.value.fields).sort(([a], [b]) => rank(a) - rank(b) || a.localeCompare(b));
      for (const [name, one] of entries) map.add(new Pair(new Scalar(name), nodeOf(one)));
      return map;
    }
    case "listValue": {
      const list = new YAMLSeq();
      for (const one of kind.value.values) list.add(nodeOf(one));
      return list;
    }
    case "doubleValue":
      return Object.assign(new Scalar(kind.value), { minFractionDigits: 1 }); // 1.0 is no integer
    case "stringValue":
    case "intValue":
    case "boolValue":
      return new Scalar(kind.value);
    default:
      return new Scalar(null);
  }
}

/** Part of a text, by its first position and the one after its last. */
export interface Place {
  readonly from: number;
  readonly to: number;
}

/**
 * Where a text has a field, or the nearest one around it that it has.
 *
 * @param path Such as "bind_mounts[0].host_path" or "line 3, column 7", as the server names faults.
 */
export function placeOf(text: string, path: string): Place | undefined {
  const said = /^line (\d+)/.exec(path);
  if (said) return lineAt(text, Number(said[1]));
  const { contents } = parseDocument(text, { uniqueKeys: false, logLevel: "silent" });
  return contents ? within(contents, path) : undefined;
}

function within(node: unknown, path: string): Place | undefined {
  if (isSeq(node)) {
    const said = /^\[(\d+)\]\.?/.exec(path);
    const item = said ? node.items[Number(said[1])] : undefined;
    return said && item ? (within(item, path.slice(said[0].length)) ?? placeOfNode(item)) : undefined;
  }
  if (!isMap(node)) return undefined;
  const named = node.items.filter(({ key }) => isScalar(key) && begins(path, String(key.value)));
  // Names may have dots: the longest that fits is the field's.
  const [pair] = named.sort((a, b) => String(b.key).length - String(a.key).length);
  if (!pair) return undefined;
  const rest = path.slice(String((pair.key as Scalar).value).length).replace(/^\./, "");
  return within(pair.value, rest) ?? placeOfNode(pair.key);
}

const begins = (path: string, name: string): boolean => path === name || path.startsWith(`${name}.`) || path.startsWith(`${name}[`);

function placeOfNode(node: unknown): Place | undefined {
  const range = (node as Node).range;
  return range ? { from: range[0], to: range[1] } : undefined;
}

function lineAt(text: string, number: number): Place {
  const lines = text.split("\n");
  const at = Math.min(number, lines.length) - 1;
  const from = lines.slice(0, at).reduce((sum, line) => sum + line.length + 1, 0);
  return { from, to: from + (lines[at] ?? "").length };
}

/** The line of a place, from 1. */
export const lineOf = (text: string, { from }: Place): number => text.slice(0, from).split("\n").length;
