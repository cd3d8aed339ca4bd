// What every call goes through: its token, and the retries that docs/clients.md asks for.

import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";

const ATTEMPTS = 4;
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 2000;

/** Sends a token with each call. */
export function authorize(token: () => string | Promise<string>): Interceptor {
  return (next) => async (request) => {
    request.header.set("authorization", `Bearer ${await token()}`);
    return next(request);
  };
}

/** Repeats calls that change nothing when the service is away for a moment. */
export const retryReads: Interceptor = (next) => async (request) => {
  const repeatable = request.method.idempotency === Level.NO_SIDE_EFFECTS && !request.stream;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await next(request);
    } catch (error) {
      const code = ConnectError.from(error).code;
      if (!repeatable || code !== Code.Unavailable || attempt === ATTEMPTS) throw error;
      await pause(attempt, request.signal);
    }
  }
};

/**
 * Waits before another attempt: 0.1 s, then twice as long each time, at most 2 s, with a random part.
 *
 * @throws The reason of the signal, when it aborts.
 */
export async function pause(attempt: number, signal?: AbortSignal): Promise<void> {
  const longest = Math.min(FIRST_WAIT_MS * 2 ** (attempt - 1), LONGEST_WAIT_MS);
  await new Promise<void>((resolve, reject) => {
    const aborted = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", aborted);
      resolve();
    }, longest * (0.5 + Math.random() / 2));
    if (signal?.aborted) aborted();
    else signal?.addEventListener("abort", aborted, { once: true });
  });
}
