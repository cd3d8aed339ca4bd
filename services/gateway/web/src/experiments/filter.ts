// The filter line: words of names, and `state:`, `label:`, `owner:`, `workspace:`, `project:`, `archived:`.

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ListExperimentsRequestSchema } from "$gen/resolute/api/experiments/v1/experiments_service_pb.js";
import { STATE_WORDS } from "$src/api/states";

/** What is named by people, and known to the services by ids. */
export interface Named {
  readonly workspaces: readonly string[];
  readonly projects: readonly string[];
  readonly owners: readonly string[];
}

export interface Filter {
  readonly named: Named;
  readonly request: MessageInitShape<typeof ListExperimentsRequestSchema>;
  /** What is wrong with the filter, for people; empty for nothing. */
  readonly problem: string;
  /** Whether nothing is filtered. */
  readonly isEmpty: boolean;
}

/** Reads a filter line. What is wrong with it is left out, and said. */
export function parseFilter(line: string, userId: bigint | undefined): Filter {
  const problems: string[] = [];
  const words: string[] = [];
  const named = { workspaces: [] as string[], projects: [] as string[], owners: [] as string[] };
  const request = { states: [] as number[], labels: [] as string[], ownerIds: [] as bigint[], archived: false as boolean | undefined };
  for (const part of line.match(/[^\s"]*"[^"]*"|\S+/g) ?? []) {
    const [, key, quoted] = /^(state|label|owner|workspace|project|archived):(.*)$/.exec(part) ?? [];
    const value = (quoted ?? "").replaceAll('"', "");
    if (!key && COMPARISON.test(part)) problems.push(`${part}: metrics have columns (Columns, then a metric) by which the list is sorted`);
    else if (!key && OTHER_KEY.test(part)) problems.push(`${part}: there are ${KEYS}; put a name with a colon in quotes`);
    else if (!key) words.push(part.replaceAll('"', ""));
    else if (!value) continue; // still being typed
    else if (key === "label") request.labels.push(value);
    else if (key === "workspace") named.workspaces.push(value);
    else if (key === "project") named.projects.push(value);
    else if (key === "owner" && value === "me" && userId) request.ownerIds.push(userId);
    else if (key === "owner") named.owners.push(value);
    else if (key === "archived" && ["yes", "no", "any"].includes(value)) request.archived = value === "any" ? undefined : value === "yes";
    else if (key === "state" && STATE_WORDS[value]) request.states.push(...STATE_WORDS[value]);
    else problems.push(`${part}: use ${EXPECTED[key]}`);
  }
  const { archived, ...lists } = request;
  return {
    named,
    request: { ...lists, nameContains: words.join(" "), ...(archived === undefined ? {} : { archived }) },
    problem: problems.join("; "),
    isEmpty: !line.trim(),
  };
}

/** What the shown experiments have, by the words of the filter. */
export type Known = Readonly<Record<string, readonly string[]>>;

/** Lines that complete the word that is being typed, at most a dozen. */
export function completions(line: string, known: Known): string[] {
  const word = /\S*$/.exec(line)?.[0] ?? "";
  const values: Known = { state: Object.keys(STATE_WORDS), archived: ["yes", "no", "any"], ...known };
  const words = Object.entries(values).flatMap(([key, texts]) =>
    word.includes(":") ? [...new Set(texts)].map((text) => `${key}:${/\s/.test(text) ? `"${text}"` : text}`) : [`${key}:`],
  );
  const before = line.slice(0, line.length - word.length);
  return words.filter((one) => one.startsWith(word) && one !== word).slice(0, 12).map((one) => before + one);
}

/** Words that a person means as conditions, and that no part of the filter understands. Quoted ones are names. */
const COMPARISON = /^[\w./-]+[<>=]/;
const OTHER_KEY = /^[a-z]+:(?!\/\/)/;
const KEYS = "state:, label:, owner:, workspace:, project: and archived:";

const EXPECTED: Readonly<Record<string, string>> = {
  state: Object.keys(STATE_WORDS).join(", "),
  archived: "yes, no or any",
};
