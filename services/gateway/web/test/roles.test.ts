import { expect, test } from "vitest";
import { UserRole } from "$gen/resolute/api/experiments/v1/user_pb.js";
import { includes, refusalOf } from "$src/api/roles";

test("each role includes those before it", () => {
  const order = [UserRole.UNSPECIFIED, UserRole.MEMBER, UserRole.VIEWER, UserRole.EDITOR, UserRole.ADMIN];
  for (const [at, role] of order.entries()) expect(order.filter((other) => includes(role, other))).toEqual(order.slice(0, at + 1));
});

test("who may not do something is told which role it needs", () => {
  expect(refusalOf(UserRole.EDITOR, UserRole.EDITOR, "here")).toBe("");
  expect(refusalOf(UserRole.VIEWER, UserRole.EDITOR, "in the workspace vision")).toBe(
    "Your role in the workspace vision is viewer: this needs the role editor, which an admin can give you.",
  );
  expect(refusalOf(UserRole.MEMBER, UserRole.EDITOR, "here")).toContain("You have no role here");
});
