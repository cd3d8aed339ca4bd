import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, describe, expect, it } from "vitest";
import { WatchResponseSchema, type WatchResponse } from "$gen/resolute/api/gateway/v1/gateway_service_pb.js";
import { SharedStream, type SharedRequest } from "$src/live/sharedStream";
import { LiveStream, type Liveness } from "$src/live/stream";
import { linesSubscription } from "$src/live/subscription";
import { openBy } from "$src/live/tabStream";

/** A stream that the worker has opened, whose news the test gives. */
class Opened {
  readonly #queue: (WatchResponse | Error)[] = [];
  #wake: () => void = () => undefined;

  constructor(
    readonly request: SharedRequest,
    readonly signal: AbortSignal,
  ) {
    signal.addEventListener("abort", () => this.#wake());
  }

  /** The cursors of the logs that are asked for, by their trials. */
  get cursors(): ReadonlyMap<string, bigint> {
    const all = this.request.views?.flatMap(({ lines }) => lines?.subscriptions ?? []) ?? [];
    return new Map(all.map(({ filter, afterLineId }) => [filter?.trialId ?? "", afterLineId ?? 0n]));
  }

  /** Sends lines up to a cursor of the log of a trial. */
  lines(trialId: string, cursor: bigint): void {
    const view = this.request.views?.find(({ lines }) => lines?.subscriptions?.[0]?.filter?.trialId === trialId);
    const key = view?.lines?.subscriptions?.[0]?.key ?? "";
    this.push(create(WatchResponseSchema, { view: view?.key ?? "", event: { case: "lines", value: { key, lines: [], cursor } } }));
  }

  push(news: WatchResponse | Error): void {
    this.#queue.push(news);
    this.#wake();
  }

  async *answers(): AsyncGenerator<WatchResponse> {
    for (;;) {
      if (this.signal.aborted) throw new ConnectError("aborted", Code.Canceled);
      const next = this.#queue.shift();
      if (next instanceof Error) throw next;
      if (next) yield next;
      else await new Promise<void>((wake) => (this.#wake = wake));
    }
  }
}

/** The tabs of a browser, and their worker. */
class Browser {
  readonly streams: Opened[] = [];
  readonly #worker = new SharedStream({
    open: (request, signal) => {
      const opened = new Opened(request, signal);
      this.streams.push(opened);
      return opened.answers();
    },
    settleMs: 1,
    renewalMs: 200,
  });
  readonly #ports: MessagePort[] = [];

  tab(): { live: LiveStream; port: MessagePort; liveness: (Liveness | undefined)[] } {
    const port = this.port();
    const liveness: (Liveness | undefined)[] = [];
    const live = new LiveStream({
      open: openBy(port),
      pause: () => Promise.resolve(),
      settleMs: 0,
      onChange: (now) => liveness.push(now),
    });
    return { live, port, liveness };
  }

  port(): MessagePort {
    const { port1, port2 } = new MessageChannel();
    this.#ports.push(port1, port2);
    this.#worker.add(port2);
    return port1;
  }

  /** The stream that is open and asks for the logs of some trials. */
  async streamOf(...trialIds: string[]): Promise<Opened> {
    for (;;) {
      const last = this.streams.at(-1);
      if (last && !last.signal.aborted && [...last.cursors.keys()].sort().join() === trialIds.join()) return last;
      await new Promise((tell) => setTimeout(tell, 1));
    }
  }

  close(): void {
    for (const port of this.#ports) port.close();
  }
}

let browser = new Browser();
afterEach(() => {
  browser.close();
  browser = new Browser();
});

/** Follows the log of a trial; the promise is kept when lines up to the cursor came. */
function follow(live: LiveStream, trialId: string, until: bigint): Promise<void> {
  let seen = 0n;
  return new Promise((tell) => {
    const subscription = linesSubscription({ trialId }, 0n, () => undefined);
    live.add({
      ...subscription,
      take: (event) => {
        subscription.take(event);
        if (event.case === "lines") seen = event.value.cursor;
        if (seen >= until) tell();
      },
    });
  });
}

describe("the stream of all tabs", () => {
  it("brings each tab what it asked for, by one stream at a time", async () => {
    const [one, other] = [browser.tab(), browser.tab()];
    const heard = Promise.all([follow(one.live, "a", 5n), follow(other.live, "b", 7n)]);
    const stream = await browser.streamOf("a", "b");
    stream.lines("a", 5n);
    stream.lines("b", 7n);
    await heard;
    expect(browser.streams.filter(({ signal }) => !signal.aborted)).toHaveLength(1);
  });

  it("goes on where each tab is when another asks for something else", async () => {
    const [one, other] = [browser.tab(), browser.tab()];
    const heard = follow(one.live, "a", 41n);
    const first = await browser.streamOf("a");
    first.lines("a", 41n); // the next tab comes while this is on its way
    void follow(other.live, "b", 1n);
    const both = await browser.streamOf("a", "b");
    await heard;
    expect(first.signal.aborted).toBe(true);
    expect(both.cursors).toEqual(new Map([["a", 41n], ["b", 0n]]));
    expect(one.liveness).not.toContain("reconnecting");
  });

  it("leaves a tab out that is hidden, and ends when none is seen", async () => {
    const [one, other] = [browser.tab(), browser.tab()];
    void follow(one.live, "a", 1n);
    void follow(other.live, "b", 1n);
    await browser.streamOf("a", "b");
    one.live.setVisible(false);
    const rest = await browser.streamOf("b");
    other.live.setVisible(false);
    await new Promise<void>((tell) => rest.signal.addEventListener("abort", () => tell()));
    expect(browser.streams.every(({ signal }) => signal.aborted)).toBe(true);
  });

  it("is opened again for every tab after it was lost", async () => {
    const [one, other] = [browser.tab(), browser.tab()];
    const heard = Promise.all([follow(one.live, "a", 9n), follow(other.live, "b", 9n)]);
    const lost = await browser.streamOf("a", "b");
    lost.lines("a", 4n);
    lost.push(new ConnectError("gone", Code.Unavailable));
    while (browser.streams.at(-1) === lost) await new Promise((tell) => setTimeout(tell, 1));
    const again = await browser.streamOf("a", "b");
    expect(again.cursors).toEqual(new Map([["a", 4n], ["b", 0n]]));
    again.lines("a", 9n);
    again.lines("b", 9n);
    await heard;
    expect(one.liveness).toContain("reconnecting");
  });

  it("does not wait for a tab that has crashed", async () => {
    const silent = browser.port(); // asks, and then says nothing any more
    silent.postMessage({ open: 1, request: { lines: { subscriptions: [{ key: "1", filter: { trialId: "z" } }] } } });
    await browser.streamOf("z");
    void follow(browser.tab().live, "a", 1n);
    await browser.streamOf("a");
  });

  it("sends no more to a tab that does not keep up, and lets it go on from where it is", async () => {
    const silent = browser.port();
    const heard: { event?: unknown; end?: { code: number } }[] = [];
    silent.onmessage = ({ data }) => heard.push(data);
    silent.postMessage({ open: 1, request: { lines: { subscriptions: [{ key: "1", filter: { trialId: "z" } }] } } });
    const stream = await browser.streamOf("z");
    for (let cursor = 1n; cursor <= 100n; cursor += 1n) stream.lines("z", cursor);
    while (!heard.some(({ end }) => end?.code === Code.Unavailable)) await new Promise((tell) => setTimeout(tell, 1));
    expect(heard.filter(({ event }) => event).length).toBeLessThan(100);
  });
});
