// The queue, as it changes.

import type { Job } from "$gen/resolute/api/experiments/v1/job_pb.js";
import { clusterState } from "$src/frame/clusterState.svelte";
import { watch } from "$src/live/live.svelte";
import { queueSubscription } from "$src/live/subscription";

export class QueueStore {
  jobs = $state.raw<readonly Job[] | undefined>();
  total = $state(0n);

  /** Follows the queue; returns what ends that. */
  follow(): () => void {
    const ending = new AbortController();
    const end = watch(
      queueSubscription((jobs, total) => {
        this.jobs = jobs;
        this.total = total;
        void clusterState.refresh(ending.signal); // slots have other holders
      }),
    );
    return () => {
      ending.abort();
      end();
    };
  }
}
