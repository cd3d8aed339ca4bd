// Roles of users in the cluster, and in single workspaces, from the least.

import { UserRole } from "$gen/resolute/api/experiments/v1/user_pb.js";

export interface Role {
  readonly role: UserRole;
  readonly word: string;
  /** What it allows. */
  readonly says: string;
}

export const ROLES: readonly Role[] = [
  { role: UserRole.MEMBER, word: "member", says: "May sign in, and do in each workspace what the role there allows." },
  { role: UserRole.VIEWER, word: "viewer", says: "May read everything, in every workspace." },
  { role: UserRole.EDITOR, word: "editor", says: "May read everything, and run experiments in every workspace." },
  { role: UserRole.ADMIN, word: "admin", says: "May do everything, and change users, roles and quotas." },
];

/** A role in one word. */
export const roleWord = (role: UserRole): string => ROLES.find((one) => one.role === role)?.word ?? "unknown";
