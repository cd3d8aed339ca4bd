// The series of some trials that a chart shows, each followed as long as it is wanted.

import { untrack } from "svelte";
import { SvelteMap } from "svelte/reactivity";
import { LiveCurve, pointsOfEach, zoom, type SeriesName } from "./live.svelte";
import type { Range } from "$src/plots/ranges";

export const seriesKey = ({ trialId, group, name }: SeriesName): string => JSON.stringify([trialId, group, name]);

export class FollowedCurves {
  readonly #lines = new SvelteMap<string, LiveCurve>();
  readonly #ends = new Map<string, () => void>();

  /** The curve of a series; nothing where it is not followed. */
  of(series: SeriesName): LiveCurve | undefined {
    return this.#lines.get(seriesKey(series));
  }

  /** Follows some series. Those that were followed keep their points: only what is new is asked for. */
  follow(wanted: readonly SeriesName[]): void {
    const now = new Map(wanted.map((one) => [seriesKey(one), one]));
    untrack(() => {
      for (const key of [...this.#ends.keys()].filter((one) => !now.has(one))) {
        this.#ends.get(key)?.();
        this.#ends.delete(key);
        this.#lines.delete(key);
      }
      for (const [key, series] of now) {
        if (this.#ends.has(key)) continue;
        const line = new LiveCurve(series, pointsOfEach(wanted.length));
        this.#lines.set(key, line);
        this.#ends.set(key, line.follow());
      }
    });
  }

  /** Shows a stretch of all at its full resolution, or the whole of each; returns what ends the query. */
  zoom(range: Range | undefined, shown: () => void): () => void {
    return zoom([...this.#lines.values()], range, shown);
  }

  end(): void {
    for (const end of this.#ends.values()) end();
  }
}
