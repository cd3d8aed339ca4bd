// Charts within reports: an image whose address is a view of the page stands for the chart of what that view compares.

import { changedQuery } from "$src/frame/location";
import { numbersOf } from "$src/compare/numbers";
import type { Parameters } from "$src/frame/route.svelte";

export interface ChartAddress {
  readonly trials: readonly bigint[];
  readonly experiments: readonly bigint[];
  /** The address below the root, for a link to the view. */
  readonly path: string;
  readonly query: string;
}

/** The chart that an address stands for; nothing for an address of something else. */
export function chartOf(href: string, root: string): ChartAddress | undefined {
  if (!URL.canParse(href, root)) return undefined;
  const { href: whole, pathname, search, searchParams } = new URL(href, root);
  const base = new URL(root);
  if (!whole.startsWith(base.href)) return undefined;
  const place = pathname.slice(base.pathname.length).replace(/\/$/, "");
  const [, kind, number] = /^(experiments|trials)\/([1-9]\d{0,17})$/.exec(place) ?? [];
  if (!kind && place !== "compare") return undefined;
  const named = (name: string) => numbersOf(kind === name ? (number ?? "") : kind ? "" : (searchParams.get(name) ?? ""));
  const [trials, experiments] = [named("trials"), named("experiments")];
  return trials.length || experiments.length ? { trials, experiments, path: place + search, query: search } : undefined;
}

/** The options of one chart, which begin as its address has them; what a person zooms into is for this view alone. */
export class ChartParameters implements Parameters {
  #query = $state.raw(new URLSearchParams());

  constructor(query: string) {
    this.#query = new URLSearchParams(query);
  }

  get(name: string): string {
    return this.#query.get(name) ?? "";
  }

  set(changes: Readonly<Record<string, string | undefined>>): void {
    this.#query = new URLSearchParams(changedQuery(this.#query, changes));
  }
}
