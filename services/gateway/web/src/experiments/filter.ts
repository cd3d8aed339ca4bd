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
  for (const part of line.match(/\S*"[^"]*"|\S+/g) ?? []) {
    const [, key, quoted] = /^(state|label|owner|workspace|project|archived):(.*)$/.exec(part) ?? [];
    const value = (quoted ?? "").replaceAll('"', "");
    if (!key) words.push(part.replaceAll('"', ""));
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

const EXPECTED: Readonly<Record<string, string>> = {
  state: Object.keys(STATE_WORDS).join(", "),
  archived: "yes, no or any",
};
