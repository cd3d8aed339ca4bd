// How a person has arranged charts: some first, in an order of their own, and some hidden.

import { metricLabel, readMetrics, writtenMetrics, type Metric } from "$src/plots/metric";
import { decoded } from "$src/plots/ranges";

/** The metrics that one chart draws. */
export type Drawn = readonly Metric[];

export interface Arrangement {
  /** Charts that come first, in this order; one may draw several metrics. */
  readonly pinned: readonly Drawn[];
  /** Labels of metrics that are not shown. */
  readonly hidden: ReadonlySet<string>;
}

/** A setting has room for so many characters. */
export const ROOM = 4000;
const HIDDEN = "-";

export const nameOf = (drawn: Drawn): string => drawn.map(metricLabel).join(", ");

/** Reads an arrangement, such as "training%2Floss+validation%2Floss,-training%2Flr"; what is wrong is left out. */
export function readArrangement(text: string): Arrangement {
  const parts = text.split(",").filter(Boolean);
  const charts = parts.filter((one) => !one.startsWith(HIDDEN)).map((one) => readMetrics(one.replaceAll("+", ",")));
  const hidden = parts.filter((one) => one.startsWith(HIDDEN)).flatMap((one) => decoded(one.slice(1)) || []);
  return { pinned: [...new Map(charts.filter((one) => one.length).map((one) => [nameOf(one), one])).values()], hidden: new Set(hidden) };
}

/** What `readArrangement` reads; nothing where a setting has no room for it. */
export function writtenArrangement({ pinned, hidden }: Arrangement): string | undefined {
  const charts = pinned.map((one) => writtenMetrics(one).replaceAll(",", "+").replace(/^-/, "%2D"));
  const text = [...charts, ...[...hidden].map((label) => HIDDEN + encodeURIComponent(label))].join(",");
  return text.length > ROOM ? undefined : text;
}

/** Puts a chart first, or back to its place. */
export function pinned(arrangement: Arrangement, chart: Drawn): Arrangement {
  const others = arrangement.pinned.filter((one) => nameOf(one) !== nameOf(chart));
  return { ...arrangement, pinned: others.length < arrangement.pinned.length ? others : [...others, chart] };
}

/** Moves a chart that is pinned by some places. */
export function movedBy(arrangement: Arrangement, chart: Drawn, by: number): Arrangement {
  const at = arrangement.pinned.findIndex((one) => nameOf(one) === nameOf(chart));
  const others = arrangement.pinned.filter((_, index) => index !== at);
  return at < 0 ? arrangement : { ...arrangement, pinned: others.toSpliced(Math.max(0, at + by), 0, chart) };
}

/** Draws one more metric in a chart, which is pinned from then on. */
export function joined(arrangement: Arrangement, chart: Drawn, metric: Metric): Arrangement {
  if (chart.some((one) => metricLabel(one) === metricLabel(metric))) return arrangement;
  const at = arrangement.pinned.findIndex((one) => nameOf(one) === nameOf(chart));
  const wider = [...chart, metric];
  return { ...arrangement, pinned: at < 0 ? [...arrangement.pinned, wider] : arrangement.pinned.with(at, wider) };
}

/** Hides a chart: a metric of its own from now on, one of several metrics for good. */
export function hidden(arrangement: Arrangement, chart: Drawn): Arrangement {
  const without = { ...arrangement, pinned: arrangement.pinned.filter((one) => nameOf(one) !== nameOf(chart)) };
  return chart.length > 1 ? without : { ...without, hidden: new Set([...arrangement.hidden, nameOf(chart)]) };
}

/** A part of a grid of charts, with a heading. */
export interface Section {
  readonly name: string;
  readonly charts: readonly Drawn[];
}

const SYSTEM = /^(system|profil|gpu|cpu|hardware|machine|node)/i;
const FIRST = ["training", "validation"];

/**
 * Charts in their sections: those that are pinned, the metric of the search, training, validation, other groups, and at the end
 * what machines report of themselves.
 *
 * @param main Labels of metrics that searches decide by.
 */
export function sectionsOf(metrics: readonly Metric[], { pinned, hidden }: Arrangement, main: readonly string[]): Section[] {
  const shown = metrics.filter((one) => !hidden.has(metricLabel(one)));
  const known = new Set(shown.map(metricLabel));
  const first = pinned.filter((chart) => chart.some((one) => known.has(metricLabel(one))));
  const alone = new Set(first.filter((one) => one.length === 1).map(nameOf));
  const sections = new Map<string, Drawn[]>();
  for (const metric of shown) {
    if (alone.has(metricLabel(metric))) continue;
    const name = main.includes(metricLabel(metric)) ? MAIN : prefix(metric);
    sections.set(name, [...(sections.get(name) ?? []), [metric]]);
  }
  const ordered = [...sections].sort(([a], [b]) => rank(a) - rank(b)).map(([name, charts]) => ({ name, charts }));
  return first.length ? [{ name: "Pinned", charts: first }, ...ordered] : ordered;
}

const MAIN = "Metric of the search";

function rank(name: string): number {
  if (name === MAIN) return 0;
  const at = FIRST.findIndex((one) => name === one || name.startsWith(`${one} /`));
  return at >= 0 ? at + 1 : SYSTEM.test(name) ? 9 : 5;
}

/** Group, and what the name has before its first separator. */
function prefix({ group, name }: Metric): string {
  const at = name.search(/[./]/);
  return at > 0 ? `${group} / ${name.slice(0, at)}` : group;
}
