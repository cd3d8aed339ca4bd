// The one stream of all tabs of a browser. It remembers nothing of what came: tabs know from where they go on.
//
// A stream cannot be asked for more. So when a tab asks for something else, the stream is closed, the other tabs are told to
// ask again from where they now are, and one is opened for what all want.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import type { WatchRequestSchema, WatchResponse } from "$gen/resolute/api/gateway/v1/gateway_service_pb.js";
import { failureOf } from "$client/errors.js";
import type { ToTab, ToWorker } from "./messages";
import type { Request } from "./subscription";

/** What all tabs ask for. */
export type SharedRequest = MessageInitShape<typeof WatchRequestSchema>;

export interface SharedStreamOptions {
  readonly open: (request: SharedRequest, signal: AbortSignal) => AsyncIterable<WatchResponse>;
  /** How long tabs may come and go before a stream is opened for all. */
  readonly settleMs?: number;
  /** How long a tab may take to ask again; one that does not is gone. */
  readonly renewalMs?: number;
}

/** A tab that has so many messages before it is sent no more: it asks again from where it then is. */
const MOST_UNREAD = 64;

interface Asked {
  readonly id: number;
  readonly request: Request;
  unread: number;
}

interface Tab {
  readonly port: MessagePort;
  asked: Asked | undefined;
  /** Whether it was told to ask again. */
  isAwaited: boolean;
}

export class SharedStream {
  readonly #options: Required<SharedStreamOptions>;
  readonly #tabs = new Map<string, Tab>();
  #nextKey = 1;
  #current: AbortController | undefined;
  #settling: ReturnType<typeof setTimeout> | undefined;
  #awaitedUntil = 0;

  constructor(options: SharedStreamOptions) {
    this.#options = { settleMs: 30, renewalMs: 2000, ...options };
  }

  /** Serves a tab. */
  add(port: MessagePort): void {
    const key = String(this.#nextKey++);
    const tab: Tab = { port, asked: undefined, isAwaited: false };
    this.#tabs.set(key, tab);
    port.addEventListener("message", ({ data }: MessageEvent<ToWorker>) => this.#hear(tab, data));
    // Browsers that do not tell of it leave a tab that crashed until somebody asks for something else.
    port.addEventListener("close", () => {
      this.#tabs.delete(key);
      this.#change();
    });
    port.start();
  }

  #hear(tab: Tab, message: ToWorker): void {
    if ("taken" in message) {
      if (tab.asked?.id === message.taken) tab.asked.unread -= 1;
      return;
    }
    if ("open" in message) tab.asked = { id: message.open, request: message.request, unread: 0 };
    else if (tab.isAwaited || tab.asked?.id === message.close) tab.asked = undefined;
    else return;
    tab.isAwaited = false;
    this.#change(tab);
  }

  /** Opens another stream soon. */
  #change(by?: Tab): void {
    if (this.#current) {
      this.#current.abort();
      this.#current = undefined;
      this.#awaitedUntil = performance.now() + this.#options.renewalMs;
      for (const tab of this.#tabs.values()) if (tab !== by) this.#renew(tab);
    }
    this.#settle();
  }

  #renew(tab: Tab): void {
    if (!tab.asked) return;
    tell(tab.port, { id: tab.asked.id, renew: true });
    tab.asked = undefined;
    tab.isAwaited = true;
  }

  #settle(): void {
    this.#settling ??= setTimeout(() => {
      this.#settling = undefined;
      const isAwaiting = [...this.#tabs.values()].some((tab) => tab.isAwaited);
      if (isAwaiting && performance.now() < this.#awaitedUntil) this.#settle();
      else void this.#read((this.#current = new AbortController()).signal);
    }, this.#options.settleMs);
  }

  async #read(signal: AbortSignal): Promise<void> {
    for (const tab of this.#tabs.values()) tab.isAwaited = false;
    const views = [...this.#tabs].flatMap(([key, { asked }]) => (asked ? [{ ...asked.request, key }] : []));
    let end: { code: Code; message: string } | undefined;
    try {
      if (!views.length) return;
      for await (const { view, event } of this.#options.open({ views }, signal)) {
        if (signal.aborted) return;
        const tab = this.#tabs.get(view);
        if (tab) deliver(tab, event);
      }
    } catch (error) {
      end = failureOf(error);
    }
    if (signal.aborted) return;
    this.#current = undefined;
    for (const tab of this.#tabs.values()) finish(tab, end);
  }
}

const tell = (port: MessagePort, message: ToTab): void => port.postMessage(message);

function deliver(tab: Tab, event: WatchResponse["event"]): void {
  if (!tab.asked) return;
  tell(tab.port, { id: tab.asked.id, event });
  tab.asked.unread += 1;
  if (tab.asked.unread > MOST_UNREAD) finish(tab, { code: Code.Unavailable, message: "the tab reads too slowly" });
}

function finish(tab: Tab, end: { readonly code: Code; readonly message: string } | undefined): void {
  if (tab.asked) tell(tab.port, { id: tab.asked.id, end: end && { code: end.code, message: end.message } });
  tab.asked = undefined;
}
