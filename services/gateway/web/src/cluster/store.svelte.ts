// The cluster with its slots, and the queue.

import type { GetClusterResponse } from "$gen/resolute/api/experiments/v1/cluster_service_pb.js";
import type { Job } from "$gen/resolute/api/experiments/v1/job_pb.js";
import { failureOf } from "$client/errors.js";
import { within } from "$src/api/services";
import { watch } from "$src/live/live.svelte";
import { queueSubscription } from "$src/live/subscription";
import { cluster as service } from "./services";

/** Problems of the cluster, such as a full disk, are told by no stream: they are asked for while this view is seen. */
const EVERY_MS = 4000;

export class ClusterStore {
  cluster = $state.raw<GetClusterResponse | undefined>();
  jobs = $state.raw<readonly Job[] | undefined>();
  total = $state(0n);
  problem = $state("");

  /** Follows both; returns what ends that. */
  follow(): () => void {
    const ending = new AbortController();
    const ask = () => void this.#ask(ending.signal);
    const end = watch(
      queueSubscription((jobs, total) => {
        this.jobs = jobs;
        this.total = total;
        ask(); // slots have other holders
      }),
    );
    const timer = setInterval(() => document.hidden || ask(), EVERY_MS);
    ask();
    return () => {
      clearInterval(timer);
      ending.abort();
      end();
    };
  }

  async #ask(signal: AbortSignal): Promise<void> {
    try {
      this.cluster = await service.getCluster({}, within(signal));
      this.problem = "";
    } catch (error) {
      if (!signal.aborted) this.problem = failureOf(error).message;
    }
  }
}
