// Reads that a view cannot do without.

import { Code } from "@connectrpc/connect";
import { failureOf } from "$client/errors.js";
import { pause } from "$client/interceptors.js";

/** Whether asking again for the same would fail again. */
export function isRefusal(code: Code): boolean {
  return [Code.InvalidArgument, Code.NotFound, Code.DataLoss, Code.PermissionDenied, Code.Unauthenticated, Code.Unimplemented].includes(code);
}

/**
 * Repeats a read, with pauses, until it succeeds.
 *
 * @param tell Told why it failed each time, and "" when it succeeds.
 * @returns What it read; nothing where it is refused or the view ended.
 */
export async function readUntilDone<Answer>(
  read: () => Promise<Answer>,
  signal: AbortSignal,
  tell: (problem: string) => void,
): Promise<Answer | undefined> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const answer = await read();
      if (signal.aborted) return undefined;
      tell("");
      return answer;
    } catch (error) {
      if (signal.aborted) return undefined;
      const { code, message } = failureOf(error);
      tell(message);
      if (isRefusal(code)) return undefined;
    }
    await pause(attempt, signal).catch(() => undefined);
    if (signal.aborted) return undefined;
  }
}
