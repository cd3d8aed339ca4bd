// Live points of some series, and those of a stretch that was zoomed into.

import { services, within } from "$src/api/services";
import { watch } from "$src/live/live.svelte";
import { seriesSubscription } from "$src/live/subscription";
import { around, NO_POINTS, received, type Points, type Stretch } from "./series";

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
  /** Whether the server has answered. */
  isKnown = $state(false);
  #stretch = $state.raw<Stretch | undefined>();
  readonly name: SeriesName;
  readonly #maxPoints: number;

  constructor(name: SeriesName, maxPoints = MAX_POINTS) {
    this.name = name;
    this.#maxPoints = maxPoints;
  }

  /** What is drawn. */
  get points(): Points {
    return this.#stretch ? around(this.whole, this.#stretch) : this.whole;
  }

  /** Follows the series; returns what ends that. */
  follow(): () => void {
    return watch(
      seriesSubscription({ ...this.name, maxPoints: this.#maxPoints }, (news) => {
        this.isKnown = true;
        this.whole = received(this.whole, { ...fromWire(news), reset: news.reset });
      }),
    );
  }

  /** Draws a stretch with more of its points, or the whole again. */
  show(stretch: Stretch | undefined): void {
    this.#stretch = stretch;
  }
}

/**
 * Loads a stretch of some curves at its full resolution, or goes back to the whole of each; returns what ends the query.
 *
 * @param shown Told when the curves have changed.
 */
export function zoom(curves: readonly LiveCurve[], range: Stretch["range"] | undefined, shown: () => void): () => void {
  const ending = new AbortController();
  if (range && curves.length) {
    loadStretch(curves, range, ending.signal).then(shown, () => undefined); // the coarser points of the whole stay
  } else {
    for (const one of curves) one.show(undefined);
    shown();
  }
  return () => ending.abort();
}

/** Asks for all curves at once: a call for each of hundreds would take seconds. */
async function loadStretch(curves: readonly LiveCurve[], range: Stretch["range"], signal: AbortSignal): Promise<void> {
  const [least, most] = range;
  const bounds = { minSteps: BigInt(Math.max(0, Math.floor(least))), maxSteps: BigInt(Math.max(0, Math.ceil(most))) };
  const request = { series: curves.map(({ name }) => name), ...bounds, maxPoints: pointsOfEach(curves.length) };
  const found: Points[] = [];
  let pageToken = "";
  do {
    const page = await services.metrics.listSeries({ ...request, pageToken }, within(signal));
    found.push(...page.series.map(fromWire));
    pageToken = page.nextPageToken;
  } while (pageToken);
  for (const [at, points] of found.entries()) curves[at]?.show({ range, points }); // drawn once, not once a page
}
