// Which lines a chart shows of the curves of its trials: each, or groups of them.

import { groupBy } from "$src/api/grouping";
import type { Scale } from "$src/plots/axes";
import { dashed, type Mark, type Theme } from "$src/plots/marks";
import type { PlotOptions } from "$src/plots/options";
import { together } from "./groups";
import { lineOf, type Curve, type Line } from "./series";
import { choicesOf, coloringOf, type Key, type Ramp, type Traits } from "./traits";

/** A curve, and what it is grouped and coloured by. */
export interface TrialCurve {
  readonly curve: Curve;
  readonly traits: Traits;
  /** Label of its metric. */
  readonly metric: string;
  readonly isBaseline: boolean;
}

export interface Legend {
  readonly keys: readonly Key[];
  readonly ramp: Ramp | undefined;
}

export interface Lines {
  readonly lines: readonly Line[];
  readonly legend: Legend | undefined;
}

interface Look {
  readonly options: PlotOptions;
  readonly theme: Theme;
  readonly scales: ReadonlyMap<string, Scale>;
}

/** The lines of some curves. The baseline comes last, above the others, and in no group. */
export function linesOf(curves: readonly TrialCurve[], look: Look): Lines {
  const metrics = [...new Set(curves.map(({ metric }) => metric))];
  const others = curves.filter(({ isBaseline }) => !isBaseline);
  const { lines, legend } = look.options.group ? grouped(others, metrics, look) : each(others, metrics, look);
  const last = curves.filter(({ isBaseline }) => isBaseline).map(({ curve, metric }): Line => ({ ...lineOf(among(metrics, metric, curve), look.options), metric, isBaseline: true }));
  const dashes = metrics.length > 1 ? metrics.map((label): Key => ({ label, mark: among(metrics, label, { color: "var(--dim)", dash: [] }) })) : [];
  const keys = [...legend.keys, ...dashes];
  return { lines: [...lines, ...last], legend: keys.length || legend.ramp ? { keys, ramp: legend.ramp } : undefined };
}

/** A mark with the dash of a metric, where there are several. */
const among = <One extends Mark>(metrics: readonly string[], metric: string, mark: One): One => (metrics.length > 1 ? dashed(mark, metrics.indexOf(metric)) : mark);

type Part = { readonly lines: readonly Line[]; readonly legend: Legend };

function each(curves: readonly TrialCurve[], metrics: readonly string[], { options, theme, scales }: Look): Part {
  const { color } = options;
  const coloring = color ? coloringOf(color, curves.map(({ traits }) => traits), { theme, scale: scales.get(color) }) : undefined;
  const lines = curves.map(({ curve, traits, metric }): Line => ({ ...lineOf(among(metrics, metric, { ...curve, ...coloring?.of(traits.get(color)) }), options), metric }));
  return { lines, legend: { keys: coloring?.keys ?? [], ramp: coloring?.ramp } };
}

function grouped(curves: readonly TrialCurve[], metrics: readonly string[], { options, theme, scales }: Look): Part {
  const { group, band, log } = options;
  const choices = choicesOf(group, curves.map(({ traits }) => traits), { theme, scale: scales.get(group) });
  const groups = groupBy(curves, ({ traits }) => choices.of(traits.get(group)).label);
  const shown = choices.keys.map(({ label, mark }) => {
    const ofMetrics = groupBy(groups.get(label) ?? [], ({ metric }) => metric);
    const count = Math.max(0, ...[...ofMetrics.values()].map((some) => some.length));
    const lines = [...ofMetrics].map(([metric, some]): Line => {
      const name = metrics.length > 1 ? `${label} · ${metric}` : label;
      const each = some.map(({ curve }) => lineOf(curve, options));
      return { ...together(each, { label: name, mark: among(metrics, metric, { ...mark, width: 2 }), band, log }), metric };
    });
    return { key: { label: `${label} (${count})`, mark }, lines };
  });
  return { lines: shown.flatMap(({ lines }) => lines), legend: { keys: shown.map(({ key }) => key), ramp: undefined } };
}
