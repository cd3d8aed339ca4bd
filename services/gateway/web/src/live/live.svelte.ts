// The stream of this tab, and what it does.

import { pause } from "$client/interceptors.js";
import { noticeSignOut, onReach, services } from "$src/api/services";
import type { Heard } from "./messages";
import { LiveStream, type Liveness, type Open } from "./stream";
import type { Subscription } from "./subscription";
import { openBy } from "./tabStream";

class LiveState {
  liveness = $state<Liveness>("live");
  /** Since when, in milliseconds. */
  since = $state(Date.now());
  /** Of the stream; absent while nothing is followed, and then the calls of a view tell. */
  #stream: Liveness | undefined;
  #isThere = true;

  /** Takes what the stream does. */
  changed(stream: Liveness | undefined): void {
    this.#stream = stream;
    this.#tell();
  }

  /** Takes whether a call was answered. */
  reached(isThere: boolean): void {
    this.#isThere = isThere;
    this.#tell();
  }

  /** Whether the stream notices by itself when the cluster is back. */
  get follows(): boolean {
    return this.#stream !== undefined;
  }

  #tell(): void {
    const liveness = this.#stream ?? (this.#isThere ? "live" : "reconnecting");
    if (liveness === this.liveness) return;
    this.liveness = liveness;
    this.since = Date.now();
  }
}

export const liveState = new LiveState();
onReach((isThere) => liveState.reached(isThere));

/** A stream that this tab has to itself. */
const openAlone: Open = (request, signal) => services.gateway.watch(request, { signal });
let openShared = sharedOrAlone();

/** Opens streams by the worker that all tabs share; browsers of some phones have none, and show one tab at a time. */
function sharedOrAlone(): Open {
  if (!globalThis.SharedWorker) return openAlone;
  const worker = new SharedWorker(new URL("./worker.ts", import.meta.url), { type: "module" });
  worker.addEventListener("error", () => (openShared = openAlone)); // its file may be gone with an older gateway
  return openBy(worker.port);
}

const stream = new LiveStream({
  open: async function* (request, signal): AsyncGenerator<Heard> {
    try {
      yield* openShared(request, signal);
    } catch (error) {
      noticeSignOut(error);
      throw error;
    }
  },
  pause,
  onChange: (liveness) => liveState.changed(liveness),
});

/** Opens the stream of a tab that is seen, and closes that of one that is hidden. */
const look = () => stream.setVisible(!document.hidden);
document.addEventListener("visibilitychange", look);
look();

/** Hears of something until the returned function is called. */
export const watch = (subscription: Subscription): (() => void) => stream.add(subscription);
