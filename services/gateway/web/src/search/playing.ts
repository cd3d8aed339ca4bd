// The clock of a replay.

/** Times faster than it was. */
export const SPEEDS = [1, 10, 100, 1000] as const;
/** Longest wait for the next event, as a person sees it. */
const MOST_WAIT_MS = 2000;

export interface Moment {
  /** How many events have happened. */
  readonly position: number;
  /** Time of the search, in milliseconds. */
  readonly time: number;
}

/** Where a replay stands after some time of the search; long waits for an event are cut short. */
export function nextPosition(times: readonly number[], { position, time }: Moment, passed: number, speed: number): Moment {
  const upcoming = times[position] ?? time;
  const now = Math.max(time + passed, upcoming - MOST_WAIT_MS * speed);
  let next = position;
  while (next < times.length && (times[next] ?? 0) <= now) next += 1;
  return { position: next, time: now };
}
