// One stream for all that a tab shows. It is closed while the tab is hidden, and goes on where it was.

import { Code, ConnectError } from "@connectrpc/connect";
import type { Part } from "$gen/resolute/api/gateway/v1/gateway_service_pb.js";
import { failureOf } from "$client/errors.js";
import { isRefusal } from "$src/api/reading";
import type { Heard } from "./messages";
import type { MergedRequest, Request, Subscription } from "./subscription";

export type Open = (request: Request, signal: AbortSignal) => AsyncIterable<Heard>;

/** Ends a stream that is to be opened again at once, from where it is: others who share it want something else. */
export class Renewal extends Error {}

/** What the stream does, for the dot in the top line. */
export type Liveness = "live" | "paused" | "reconnecting";

export interface StreamOptions {
  readonly open: Open;
  /** Told of every change of what the stream does; nothing where nobody wants one. */
  readonly onChange?: (liveness: Liveness | undefined) => void;
  /** Waits before another attempt, from 1. */
  readonly pause: (attempt: number, signal: AbortSignal) => Promise<void>;
  /** How long views may come and go before the stream is opened for what they want together. */
  readonly settleMs?: number;
  /** After how much silence a stream counts as lost: services say something every 15 s. */
  readonly silenceMs?: number;
  /** How long the first attempt waits for a sign of life, and each later one twice as long; at most `silenceMs`. */
  readonly openingMs?: number;
  /** How long a stream must last so that the pause after its end is short again. */
  readonly steadyMs?: number;
}

export class LiveStream {
  readonly #options: Required<StreamOptions>;
  readonly #wanted = new Map<string, Subscription>();
  #visible = true;
  #nextKey = 1;
  #settling: ReturnType<typeof setTimeout> | undefined;
  #current: AbortController | undefined;

  constructor(options: StreamOptions) {
    this.#options = { settleMs: 30, silenceMs: 35_000, openingMs: 5_000, steadyMs: 10_000, onChange: () => undefined, ...options };
  }

  /** Adds a subscription; returns what ends it. */
  add(subscription: Subscription): () => void {
    const key = String(this.#nextKey++);
    this.#wanted.set(key, subscription);
    this.#settle();
    return () => {
      this.#wanted.delete(key);
      this.#settle();
    };
  }

  /** Says whether the tab is seen. A hidden one costs the server nothing. */
  setVisible(visible: boolean): void {
    if (visible === this.#visible) return;
    this.#visible = visible;
    this.#reopen();
  }

  #settle(): void {
    this.#settling ??= setTimeout(() => {
      this.#settling = undefined;
      this.#reopen();
    }, this.#options.settleMs);
  }

  #reopen(): void {
    this.#current?.abort();
    this.#current = undefined;
    if (!this.#visible) this.#options.onChange("paused");
    else void this.#keepOpen((this.#current = new AbortController()).signal);
  }

  async #keepOpen(signal: AbortSignal): Promise<void> {
    for (let attempt = 1; !signal.aborted; attempt += 1) {
      const request = this.#request();
      if (!request) {
        this.#options.onChange(undefined);
        return;
      }
      let heard: number | undefined;
      try {
        for await (const response of this.#alive(request, signal, attempt)) {
          if (signal.aborted) return;
          heard ??= performance.now();
          this.#take(response);
          this.#options.onChange("live");
        }
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Renewal) {
          attempt = 0;
          continue;
        }
        const failure = failureOf(error);
        if (failure.code === Code.Unauthenticated) return;
        if (isRefusal(failure.code)) this.#fail(undefined, failure.message);
      }
      if (signal.aborted || !this.#request()) continue;
      this.#options.onChange("reconnecting");
      // Not from its first response on: a part may fail each time after others have answered.
      if (heard !== undefined && performance.now() - heard >= this.#options.steadyMs) attempt = 1;
      await this.#options.pause(attempt, signal).catch(() => undefined);
    }
  }

  /** The stream's responses, until it ends or nothing has come for too long. */
  async *#alive(request: Request, signal: AbortSignal, attempt: number): AsyncGenerator<Heard> {
    const { silenceMs, openingMs } = this.#options;
    const silence = new AbortController();
    const wake = (ms: number) => setTimeout(() => silence.abort(), ms);
    // A connection that nobody serves, such as one that a killed gateway had not taken up, never ends by itself.
    let timer = wake(Math.min(openingMs * 2 ** (attempt - 1), silenceMs));
    try {
      for await (const response of this.#options.open(request, AbortSignal.any([signal, silence.signal]))) {
        clearTimeout(timer);
        yield response;
        timer = wake(silenceMs);
      }
    } finally {
      clearTimeout(timer);
      silence.abort(); // also where the reader has given up
    }
  }

  #take({ event }: Heard): void {
    if (event.case === "end") {
      const { part, code, message } = event.value;
      if (code === 0) this.#finish(part);
      else if (isRefusal(code)) this.#fail(part, message);
      else throw new ConnectError(message, Code.Unavailable); // its service restarts or is overloaded: ask for everything again
    } else if (event.case) {
      this.#wanted.get(event.value.key)?.take(event);
    }
  }

  #finish(part: Part): void {
    for (const one of this.#wanted.values()) if (one.part === part) one.ended = true;
  }

  #fail(part: Part | undefined, message: string): void {
    for (const one of this.#wanted.values()) {
      if (one.ended || (part !== undefined && one.part !== part)) continue;
      one.ended = true;
      one.fail?.(message);
    }
  }

  #request(): Request | undefined {
    const merged: MergedRequest = { experiments: [], queue: undefined, searches: [], series: [], lines: [] };
    for (const [key, one] of this.#wanted) if (!one.ended) one.join(merged, key);
    const { experiments, queue, searches, series, lines } = merged;
    const request: Request = {
      ...(experiments.length || queue ? { experiments: { experiments, ...(queue ? { queue } : {}) } } : {}),
      ...(searches.length ? { searches: { subscriptions: searches } } : {}),
      ...(series.length ? { series: { subscriptions: series } } : {}),
      ...(lines.length ? { lines: { subscriptions: lines } } : {}),
    };
    return Object.keys(request).length ? request : undefined;
  }
}
