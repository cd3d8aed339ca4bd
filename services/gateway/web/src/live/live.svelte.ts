// The stream of this tab, and what it does.

import { pause } from "$client/interceptors.js";
import { services } from "$src/api/services";
import { LiveStream, type Liveness } from "./stream";
import type { Subscription } from "./subscription";

class LiveState {
  liveness = $state<Liveness>("live");
  /** Since when, in milliseconds. */
  since = $state(Date.now());

  changed(liveness: Liveness): void {
    if (liveness === this.liveness) return;
    this.liveness = liveness;
    this.since = Date.now();
  }
}

export const liveState = new LiveState();

const stream = new LiveStream({
  open: (request, signal) => services.gateway.watch(request, { signal }),
  pause,
  onChange: (liveness) => liveState.changed(liveness),
});

document.addEventListener("visibilitychange", () => stream.setVisible(!document.hidden));
stream.setVisible(!document.hidden);

/** Hears of something until the returned function is called. */
export const watch = (subscription: Subscription): (() => void) => stream.add(subscription);
