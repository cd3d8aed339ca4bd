// Failures of calls, with the reason by which programs decide.

import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../gen/resolute/api/common/v1/error_pb.js";
import { BadRequestSchema, ErrorInfoSchema } from "../gen/google/rpc/error_details_pb.js";

/** The reasons of docs/clients.md, such as `NOT_FOUND`. */
export type Reason = keyof typeof ErrorReason;

/** A field of a request, or a path of a config, that is wrong. */
export interface Violation {
  readonly field: string;
  readonly description: string;
}

/** Why a call failed. */
export interface Failure {
  readonly code: Code;
  /** Absent when the failure is of the transport or of a proxy: then go by the code. */
  readonly reason: Reason | undefined;
  readonly message: string;
  readonly violations: readonly Violation[];
  /** More about it, such as the name of the object under `resource`. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** Reads what a call threw. */
export function failureOf(error: unknown): Failure {
  const failed = ConnectError.from(error);
  const info = failed.findDetails(ErrorInfoSchema).find((one) => one.domain === "resolute");
  const violations = failed.findDetails(BadRequestSchema).flatMap((one) => one.fieldViolations);
  return {
    code: failed.code,
    reason: info && info.reason in ErrorReason ? (info.reason as Reason) : undefined,
    message: failed.rawMessage,
    violations: violations.map(({ field, description }) => ({ field, description })),
    metadata: info?.metadata ?? {},
  };
}
