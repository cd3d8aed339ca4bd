import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it, vi } from "vitest";
import { Part, WatchResponseSchema, type WatchResponse } from "$gen/resolute/api/gateway/v1/gateway_service_pb.js";
import { LiveStream, type StreamOptions } from "$src/live/stream";
import { experimentSubscription, linesSubscription, type Request } from "$src/live/subscription";

/** A server whose answers the test gives one by one. */
class Server {
  readonly requests: Request[] = [];
  readonly open = (request: Request, signal: AbortSignal): AsyncIterable<WatchResponse> => {
    this.requests.push(request);
    this.signal = signal;
    for (const tell of this.#told.splice(0)) tell();
    return this.#answers(signal);
  };
  signal: AbortSignal | undefined;
  #queue: (WatchResponse | Error)[] = [];
  #wake: () => void = () => undefined;
  #told: (() => void)[] = [];

  async opened(count: number): Promise<void> {
    while (this.requests.length < count) await new Promise<void>((tell) => this.#told.push(tell));
  }

  say(answer: WatchResponse | Error): void {
    this.#queue.push(answer);
    this.#wake();
  }

  async *#answers(signal: AbortSignal): AsyncGenerator<WatchResponse> {
    for (;;) {
      const next = this.#queue.shift();
      if (next instanceof Error) throw next;
      if (next) yield next;
      else {
        await new Promise<void>((wake) => {
          this.#wake = wake;
          signal.addEventListener("abort", () => wake(), { once: true });
        });
        if (signal.aborted) throw new ConnectError("aborted", Code.Canceled);
      }
    }
  }
}

const stream = (server: Server, options: Partial<StreamOptions> = {}) =>
  new LiveStream({ open: server.open, pause: () => Promise.resolve(), settleMs: 0, ...options });
const lost = () => new ConnectError("gone", Code.Unavailable);

function experimentAt(key: string, revision: bigint): WatchResponse {
  const experiment = { number: 7n, revision };
  return create(WatchResponseSchema, {
    event: { case: "experiments", value: { key, change: { case: "experimentChange", value: { experiment, trials: [] } } } },
  });
}

function linesUpTo(key: string, cursor: bigint): WatchResponse {
  return create(WatchResponseSchema, { event: { case: "lines", value: { key, lines: [], cursor } } });
}

describe("the stream of a tab", () => {
  it("asks for everything that views want by one request", async () => {
    const server = new Server();
    const live = stream(server);
    live.add(experimentSubscription({ number: 7n }, () => undefined));
    live.add(linesSubscription({ trialId: "t" }, 5n, () => undefined));
    await server.opened(1);
    expect(server.requests).toHaveLength(1);
    expect(server.requests[0]).toMatchObject({
      experiments: { experiments: [{ key: "1", afterRevision: 0n }] },
      lines: { subscriptions: [{ key: "2", afterLineId: 5n }] },
    });
  });

  it("goes on after the revision and the cursor that came last", async () => {
    const server = new Server();
    const live = stream(server);
    const heard = new Promise<void>((tell) => live.add(linesSubscription({ trialId: "t" }, 0n, () => tell())));
    live.add(experimentSubscription({ number: 7n }, () => undefined));
    await server.opened(1);
    server.say(experimentAt("2", 41n));
    server.say(linesUpTo("1", 99n));
    await heard;
    server.say(lost());
    await server.opened(2);
    expect(server.requests[1]).toMatchObject({
      experiments: { experiments: [{ afterRevision: 41n }] },
      lines: { subscriptions: [{ afterLineId: 99n }] },
    });
  });

  it("is closed while the tab is hidden, and opened again when it is seen", async () => {
    const server = new Server();
    const live = stream(server);
    live.add(experimentSubscription({ number: 7n }, () => undefined));
    await server.opened(1);
    live.setVisible(false);
    expect(server.signal?.aborted).toBe(true);
    live.setVisible(true);
    await server.opened(2);
    expect(server.signal?.aborted).toBe(false);
  });

  it("does not ask again for a part that is complete, or that was refused", async () => {
    const server = new Server();
    const live = stream(server);
    let refusal = "";
    live.add(linesSubscription({ trialId: "t" }, 0n, () => undefined));
    live.add({ ...experimentSubscription({ number: 7n }, () => undefined), fail: (message) => (refusal = message) });
    await server.opened(1);
    const end = { part: Part.EXPERIMENTS, code: Code.NotFound, message: "no experiment 7" };
    server.say(create(WatchResponseSchema, { event: { case: "end", value: end } }));
    server.say(lost());
    await server.opened(2);
    expect(refusal).toBe("no experiment 7");
    expect(server.requests[1]).not.toHaveProperty("experiments");
    expect(server.requests[1]).toHaveProperty("lines");
  });

  it.each([Code.Internal, Code.Unknown, Code.Canceled, Code.ResourceExhausted, Code.DeadlineExceeded, Code.Unavailable])(
    "asks again for a part that failed with code %i",
    async (code) => {
      const server = new Server();
      const live = stream(server);
      const fail = vi.fn();
      live.add({ ...experimentSubscription({ number: 7n }, () => undefined), fail });
      await server.opened(1);
      server.say(create(WatchResponseSchema, { event: { case: "end", value: { part: Part.EXPERIMENTS, code, message: "no luck" } } }));
      await server.opened(2);
      expect(server.requests[1]).toHaveProperty("experiments");
      expect(fail).not.toHaveBeenCalled();
    },
  );

  it("gives up a connection that nobody serves", async () => {
    const server = new Server();
    const live = stream(server, { openingMs: 20 });
    live.add(experimentSubscription({ number: 7n }, () => undefined));
    await server.opened(1);
    const unserved = server.signal;
    await server.opened(2);
    expect(unserved?.aborted).toBe(true);
  });

  it.each([
    ["longer each time that a part fails after others have answered", Infinity, [1, 2, 3]],
    ["briefly after a stream that has lasted", 0, [1, 1, 1]],
  ])("pauses %s", async (_, steadyMs, expected) => {
    const server = new Server();
    const attempts: number[] = [];
    const live = stream(server, { steadyMs, pause: (attempt) => Promise.resolve(void attempts.push(attempt)) });
    live.add(experimentSubscription({ number: 7n }, () => undefined));
    for (const round of [1, 2, 3]) {
      await server.opened(round);
      server.say(experimentAt("1", BigInt(round)));
      server.say(create(WatchResponseSchema, { event: { case: "end", value: { part: Part.SERIES, code: Code.Internal, message: "" } } }));
    }
    await server.opened(4);
    expect(attempts).toEqual(expected);
  });
});
