// The cluster as a whole: its slots, and what keeps it from working, such as a full disk. No stream tells of it, so it is asked
// for while the tab is seen.

import { Code } from "@connectrpc/connect";
import type { GetClusterResponse } from "$gen/resolute/api/experiments/v1/cluster_service_pb.js";
import { failureOf } from "$client/errors.js";
import { within } from "$src/api/services";
import { liveState } from "$src/live/live.svelte";
import { session } from "./session.svelte";

const EVERY_MS = 4000;

class ClusterState {
  shown = $state.raw<GetClusterResponse | undefined>();
  problem = $state("");
  #refused = false;
  #asking = false;

  /** What keeps the cluster from working, each with its remedy. */
  get problems(): readonly string[] {
    return this.shown?.problems ?? [];
  }

  /** Asks from now on; returns what ends that. */
  follow(): () => void {
    const ending = new AbortController();
    const timer = setInterval(() => document.hidden || void this.refresh(ending.signal), EVERY_MS);
    void this.refresh(ending.signal);
    return () => {
      clearInterval(timer);
      ending.abort();
    };
  }

  /** Asks now, unless that is under way, or not for this user to know. */
  async refresh(signal: AbortSignal): Promise<void> {
    if (this.#asking || this.#refused || session.signedOut || (this.shown && liveState.liveness === "reconnecting")) return;
    this.#asking = true;
    try {
      const { cluster } = await import("$src/cluster/services"); // no part of what a browser loads first
      this.shown = await cluster.getCluster({}, within(signal));
      this.problem = "";
    } catch (error) {
      const { code, message } = failureOf(error);
      this.#refused = code === Code.PermissionDenied;
      if (!signal.aborted) this.problem = message;
    }
    this.#asking = false;
  }
}

export const clusterState = new ClusterState();
