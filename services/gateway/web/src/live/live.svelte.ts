// The stream of this tab, and what it does.

import { pause } from "$client/interceptors.js";
import { services } from "$src/api/services";
import { Place } from "./places";
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

const place = new Place(navigator.locks, () => stream.setVisible(false));

/** Opens the stream of a tab that is seen, and closes that of one that is hidden. */
async function look(): Promise<void> {
  if (!document.hidden) await place.take();
  stream.setVisible(!document.hidden); // it may have been hidden meanwhile
  if (document.hidden) place.leave();
}

stream.setVisible(false);
document.addEventListener("visibilitychange", () => void look());
// A tab that is seen and has lost its place takes one again when somebody turns to it.
window.addEventListener("focus", () => void look());
window.addEventListener("pointerdown", () => void look());
void look();

/** Hears of something until the returned function is called. */
export const watch = (subscription: Subscription): (() => void) => stream.add(subscription);
