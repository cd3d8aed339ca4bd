// What the person who is signed in may do, so that a view says so before a click. The services decide.

import { UserRole } from "$gen/resolute/api/experiments/v1/user_pb.js";
import { readUntilDone } from "$src/api/reading";
import { includes, refusalOf } from "$src/api/roles";
import { within } from "$src/api/services";
import { session } from "./session.svelte";

class Permissions {
  /** Roles in single workspaces; absent before they are known. */
  #roles = $state.raw<ReadonlyMap<bigint, UserRole> | undefined>();

  /** Asks for the roles in single workspaces of who is signed in; returns what ends that. */
  load(): () => void {
    const ending = new AbortController();
    const userId = session.user?.userId;
    if (userId) void this.#load(userId, ending.signal);
    return () => ending.abort();
  }

  /** Whether the person has no role anywhere, so that there is nothing to see. */
  get nowhere(): boolean {
    return session.user?.role === UserRole.MEMBER && this.#roles?.size === 0;
  }

  /** Why the person may not change what is in a workspace; empty where they may, and before that is known. Zero is the whole cluster. */
  edit(workspaceId: bigint, name: string): string {
    return this.#refusal(UserRole.EDITOR, this.#roles?.get(workspaceId), where(workspaceId, name));
  }

  /** Why the person may not do what admins of a workspace do; empty where they may. Zero is the whole cluster. */
  administer(workspaceId: bigint, name: string): string {
    return this.#refusal(UserRole.ADMIN, this.#roles?.get(workspaceId), where(workspaceId, name));
  }

  /** Why the person may not change anything anywhere; empty where they may change something. */
  get anything(): string {
    const roles = [...(this.#roles?.values() ?? [])];
    return this.#refusal(UserRole.EDITOR, roles.find((role) => includes(role, UserRole.EDITOR)), "here");
  }

  #refusal(needed: UserRole, here: UserRole | undefined, where: string): string {
    if (!session.user || !this.#roles) return "";
    const own = session.user.role;
    return refusalOf(here !== undefined && includes(here, own) ? here : own, needed, where);
  }

  async #load(userId: bigint, signal: AbortSignal): Promise<void> {
    const { roles } = await import("$src/cluster/services"); // no part of what a browser loads first
    const found = new Map<bigint, UserRole>();
    let pageToken = "";
    do {
      const ask = () => roles.listRoles({ userIds: [userId], pageToken, pageSize: 1000 }, within(signal));
      const page = await readUntilDone(ask, signal, () => undefined);
      if (!page) return;
      for (const { workspaceId, role } of page.roles) found.set(workspaceId, role);
      pageToken = page.nextPageToken;
    } while (pageToken);
    this.#roles = found;
  }
}

const where = (workspaceId: bigint, name: string): string => (workspaceId ? `in the workspace ${name}` : "in the cluster");

export const may = new Permissions();
