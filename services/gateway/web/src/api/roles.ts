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

/** Whether a role includes another; one that is not set includes none. */
export const includes = (role: UserRole, other: UserRole): boolean => rank(role) >= rank(other);
const rank = (role: UserRole): number => ROLES.findIndex((one) => one.role === role);

/** Why somebody with a role may not do what another allows; empty where they may. */
export function refusalOf(role: UserRole, needed: UserRole, where: string): string {
  if (includes(role, needed)) return "";
  const is = includes(role, UserRole.VIEWER) ? `Your role ${where} is ${roleWord(role)}` : `You have no role ${where}`;
  return `${is}: this needs the role ${roleWord(needed)}, which an admin can give you.`;
}
