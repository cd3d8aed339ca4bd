// The last answers of this tab's reads: views that are opened while the gateway is away show them.

import { toBinary } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";

type Answer = Awaited<ReturnType<Parameters<Interceptor>[0]>>;

/** Answers that are kept: those of the last few views. */
const MOST = 48;

export class Memory {
  readonly #answers = new Map<string, Answer>();
  #wasUsed = false;

  /** Gives the last answer to the same read where there is no new one. */
  readonly remember: Interceptor = (next) => async (request) => {
    if (request.stream || request.method.idempotency !== Level.NO_SIDE_EFFECTS) return next(request);
    const { method, message } = request;
    const key = `${method.parent.typeName} ${method.name} ${toBinary(method.input, message)}`;
    try {
      const answer = await next(request);
      this.#answers.delete(key);
      this.#answers.set(key, answer);
      const [oldest] = this.#answers.keys();
      if (this.#answers.size > MOST && oldest !== undefined) this.#answers.delete(oldest);
      return answer;
    } catch (error) {
      const known = ConnectError.from(error).code === Code.Unavailable ? this.#answers.get(key) : undefined;
      if (!known) throw error;
      this.#wasUsed = true;
      return known;
    }
  };

  /** Whether an old answer was given since this was asked before. */
  takeUsed(): boolean {
    const used = this.#wasUsed;
    this.#wasUsed = false;
    return used;
  }

  /** Forgets all: what one user was shown is not for the next. */
  clear(): void {
    this.#answers.clear();
  }
}
