// Ids of what a filter names.

import { Code, ConnectError } from "@connectrpc/connect";
import { services, within } from "$src/api/services";
import type { Named } from "./filter";

interface Ids {
  readonly workspaceIds: bigint[];
  readonly projectIds: bigint[];
  readonly ownerIds: bigint[];
}

/**
 * Looks the ids of workspaces, projects and users up. Projects of one name in several workspaces count together.
 *
 * @throws ConnectError for a name that nothing has.
 */
export async function idsOf(named: Named, signal: AbortSignal): Promise<Ids> {
  const [workspaceIds, projectIds, ownerIds] = await Promise.all([
    found("workspace", named.workspaces, async (names) => {
      const { workspaces } = await (await spaces()).listWorkspaces({ names, pageSize: 1000 }, within(signal));
      return workspaces.map(({ workspaceId, name }) => [name, workspaceId]);
    }),
    found("project", named.projects, async (names) => {
      const { projects } = await (await spaces()).listProjects({ names, pageSize: 1000 }, within(signal));
      return projects.map(({ projectId, name }) => [name, projectId]);
    }),
    found("user", named.owners, async (names) => {
      const { users } = await services.access.listUsers({ names, pageSize: 1000 }, within(signal));
      return users.map(({ userId, name }) => [name, userId]);
    }),
  ]);
  return { workspaceIds, projectIds, ownerIds };
}

/** The service of workspaces, which is no part of what a browser loads first. */
const spaces = async () => (await import("$src/cluster/services")).workspaces;

async function found(what: string, names: readonly string[], look: (names: string[]) => Promise<[name: string, id: bigint][]>): Promise<bigint[]> {
  if (!names.length) return [];
  const pairs = await look([...names]);
  const missing = names.filter((one) => !pairs.some(([name]) => name === one));
  if (missing.length) throw new ConnectError(`There is no ${what} ${missing.map((one) => `"${one}"`).join(", ")}.`, Code.NotFound);
  return pairs.map(([, id]) => id);
}
