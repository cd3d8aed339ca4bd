// What trials have logged beside metrics, by names and by steps.

import { type Media, MediaKind } from "$gen/resolute/api/checkpoints/v1/media_pb.js";
import type { ListMediaNamesResponse } from "$gen/resolute/api/checkpoints/v1/media_service_pb.js";

/** One name of a kind, over the trials that have logged it. */
export interface Entry {
  readonly name: string;
  readonly kind: MediaKind;
  readonly trialIds: readonly string[];
}

/** A trial, as far as it is named here. */
export interface Subject {
  readonly trialId: string;
  readonly number: bigint;
}

/** Names of kinds, for people. */
export const KINDS: Readonly<Record<MediaKind, string>> = {
  [MediaKind.UNSPECIFIED]: "media",
  [MediaKind.IMAGE]: "images",
  [MediaKind.HISTOGRAM]: "histograms",
  [MediaKind.TEXT]: "text",
  [MediaKind.TABLE]: "tables",
  [MediaKind.AUDIO]: "audio",
  [MediaKind.FIGURE]: "figures",
};

/** The names of several trials, each once, by kind and name. */
export function entriesOf({ names }: ListMediaNamesResponse): Entry[] {
  const entries = new Map<string, { name: string; kind: MediaKind; trialIds: string[] }>();
  for (const { name, kind, trialId } of names) {
    const key = `${kind} ${name}`;
    const entry = entries.get(key) ?? { name, kind, trialIds: [] };
    entry.trialIds.push(trialId);
    entries.set(key, entry);
  }
  return [...entries.values()].sort((one, other) => one.kind - other.kind || (one.name < other.name ? -1 : 1));
}

/** The steps at which something was logged, ascending. */
export function stepsOf(lists: Iterable<readonly Media[]>): bigint[] {
  const steps = new Set([...lists].flatMap((list) => list.map(({ stepsCompleted }) => stepsCompleted)));
  return [...steps].sort((one, other) => (one < other ? -1 : 1));
}

/** The place in steps of the last one up to a wanted step; of the last one of all where none is wanted. */
export function placeOf(steps: readonly bigint[], wanted: string): number {
  if (!/^-?\d{1,18}$/.test(wanted)) return steps.length - 1;
  return Math.max(0, steps.findLastIndex((step) => step <= BigInt(wanted)));
}

/** What a trial has at a step: of its last step up to there, what the latest run has logged. */
export function shownAt(media: readonly Media[], step: bigint): readonly Media[] {
  const last = media.findLast(({ stepsCompleted }) => stepsCompleted <= step)?.stepsCompleted;
  const there = media.filter(({ stepsCompleted }) => stepsCompleted === last);
  const run = Math.max(...there.map((one) => one.run));
  return there.filter((one) => one.run === run);
}

/** So many of a list, evenly chosen, with the first and the last. */
export function thinned<Item>(items: readonly Item[], most: number): Item[] {
  if (items.length <= most) return [...items];
  return Array.from({ length: most }, (_, at) => items[Math.round((at * (items.length - 1)) / (most - 1))] as Item);
}
