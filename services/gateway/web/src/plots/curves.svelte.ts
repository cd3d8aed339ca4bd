// Live points of some series, and those of a stretch that was zoomed into.

import { services, within } from "$src/api/services";
import { watch } from "$src/live/live.svelte";
import { seriesSubscription } from "$src/live/subscription";
import { NO_POINTS, received, type Points } from "./series";

const MAX_POINTS = 800;

export interface SeriesName {
  readonly trialId: string;
  readonly group: string;
  readonly name: string;
}

interface WirePoints {
  readonly steps: readonly bigint[];
  readonly values: readonly number[];
  readonly times: readonly number[];
}

const fromWire = ({ steps, values, times }: WirePoints): Points => ({ steps: steps.map(Number), values, times });

export class LiveCurve {
  whole = $state.raw<Points>(NO_POINTS);
  #zoomed = $state.raw<Points | undefined>();
  readonly name: SeriesName;

  constructor(name: SeriesName) {
    this.name = name;
  }

  /** What is drawn. */
  get points(): Points {
    return this.#zoomed ?? this.whole;
  }

  /** Follows the series; returns what ends that. */
  follow(): () => void {
    return watch(
      seriesSubscription({ ...this.name, maxPoints: MAX_POINTS }, (news) => {
        this.whole = received(this.whole, { ...fromWire(news), reset: news.reset });
      }),
    );
  }

  /** Loads a stretch at its full resolution, or goes back to the whole; returns what ends the query. */
  zoom(range: readonly [number, number] | undefined): () => void {
    if (!range) {
      this.#zoomed = undefined;
      return () => undefined;
    }
    const ending = new AbortController();
    const [least, most] = range;
    const bounds = { minSteps: BigInt(Math.max(0, Math.floor(least))), maxSteps: BigInt(Math.max(0, Math.ceil(most))) };
    services.metrics.getSeries({ ...this.name, ...bounds, maxPoints: MAX_POINTS }, within(ending.signal)).then(
      (answer) => (this.#zoomed = fromWire(answer)),
      () => undefined, // the coarser points of the whole stay
    );
    return () => ending.abort();
  }
}
