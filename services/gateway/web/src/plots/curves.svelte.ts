// Live points of some series, and those of a stretch that was zoomed into.

import { services, within } from "$src/api/services";
import { watch } from "$src/live/live.svelte";
import { seriesSubscription } from "$src/live/subscription";
import { NO_POINTS, received, type Points } from "./series";

/** Points of one line that a chart can show. */
const MAX_POINTS = 800;
/** Points of all lines of a chart: with more, a browser feels each change. */
const MAX_POINTS_TOGETHER = 32_000;
const LEAST_POINTS = 100;

/** How many points each of some lines is asked for. */
export const pointsOfEach = (lines: number): number =>
  Math.max(LEAST_POINTS, Math.min(MAX_POINTS, Math.floor(MAX_POINTS_TOGETHER / Math.max(1, lines))));

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
  readonly #maxPoints: number;

  constructor(name: SeriesName, maxPoints = MAX_POINTS) {
    this.name = name;
    this.#maxPoints = maxPoints;
  }

  /** What is drawn. */
  get points(): Points {
    return this.#zoomed ?? this.whole;
  }

  /** Follows the series; returns what ends that. */
  follow(): () => void {
    return watch(
      seriesSubscription({ ...this.name, maxPoints: this.#maxPoints }, (news) => {
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
    services.metrics.getSeries({ ...this.name, ...bounds, maxPoints: this.#maxPoints }, within(ending.signal)).then(
      (answer) => (this.#zoomed = fromWire(answer)),
      () => undefined, // the coarser points of the whole stay
    );
    return () => ending.abort();
  }
}
