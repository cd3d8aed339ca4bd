// Axes of plots of hyperparameters: numbers, linear or logarithmic, and choices.

import type { Value as ConfigValue } from "$gen/resolute/api/common/v1/value_pb.js";
import { groupBy } from "$src/api/grouping";
import { leafValues, valueText } from "$src/api/values";
import { shortNumber } from "$src/ui/format";
import { decoded } from "./ranges";

export type Value = number | string;

export interface Axis {
  readonly name: string;
  /** Where a value is, from 0 to 1; nothing where it is not on this axis. */
  readonly place: (value: Value | undefined) => number | undefined;
  readonly ticks: readonly { readonly at: number; readonly text: string }[];
}

export type Scale = "linear" | "log";

/** Numbers above zero that span as much are drawn on a logarithmic axis, where no scale is declared. */
const LOG_FROM = 50;
const MOST_TICKS = 12;
const SCALES: Readonly<Record<string, Scale>> = { int: "linear", double: "linear", log: "log" };

/** The scales that a config declares for its hyperparameters, by their dotted names. */
export function declaredScales(config: ConfigValue | undefined): Map<string, Scale> {
  const types = leafValues(config).flatMap(([path, value]) => {
    const name = /^hyperparameters\.(.+)\.type$/.exec(path)?.[1];
    const scale = SCALES[valueText(value)];
    return name && scale ? [[name, scale] as const] : [];
  });
  return new Map(types);
}

/** An axis on which some values are. */
export function axisOf(name: string, values: readonly Value[], scale?: Scale): Axis {
  const numbers = values.filter((one): one is number => typeof one === "number" && Number.isFinite(one));
  return numbers.length && values.every((one) => typeof one === "number") ? numberAxis(name, numbers, scale) : choiceAxis(name, values);
}

function numberAxis(name: string, numbers: readonly number[], scale: Scale | undefined): Axis {
  const [least, most] = bounds(numbers);
  const isLog = least > 0 && (scale ? scale === "log" : most / least >= LOG_FROM);
  const scaled = isLog ? Math.log : (value: number) => value;
  const [low, span] = [scaled(least), scaled(most) - scaled(least)];
  return {
    name,
    place: (value) => {
      if (typeof value !== "number" || !Number.isFinite(value) || (isLog && value <= 0)) return undefined;
      return span ? (scaled(value) - low) / span : 0.5;
    },
    ticks: span
      ? ticksOf(numbers, least, most, isLog).map((value) => ({ at: (scaled(value) - low) / span, text: shortNumber(value) }))
      : [{ at: 0.5, text: shortNumber(least) }],
  };
}

/** The numbers themselves where they are whole and few; otherwise the ends and round numbers between them. */
function ticksOf(numbers: readonly number[], least: number, most: number, isLog: boolean): number[] {
  const distinct = [...new Set(numbers)];
  if (distinct.length <= MOST_TICKS && distinct.every(Number.isInteger)) return distinct.sort((a, b) => a - b);
  const share = (value: number) => (isLog ? Math.log(value / least) / Math.log(most / least) : (value - least) / (most - least));
  const inner = (isLog ? powersBetween(least, most) : multiplesBetween(least, most)).filter((one) => share(one) > 0.08 && share(one) < 0.92);
  return [least, ...inner, most];
}

function multiplesBetween(least: number, most: number): number[] {
  const rough = (most - least) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((one) => one * power >= rough) ?? 10) * power;
  const first = Math.ceil(least / step);
  return Array.from({ length: Math.max(0, Math.floor(most / step) - first + 1) }, (_, at) => (first + at) * step);
}

/** Powers of ten; where they are few, twice and five times them too; where they are many, every second or third. */
function powersBetween(least: number, most: number): number[] {
  const [first, last] = [Math.floor(Math.log10(least)), Math.ceil(Math.log10(most))];
  const factors = last - first <= 2 ? [1, 2, 5] : [1];
  const every = Math.max(1, Math.ceil((last - first) / 6));
  return Array.from({ length: last - first + 1 }, (_, at) => first + at)
    .filter((power) => power % every === 0)
    .flatMap((power) => factors.map((factor) => factor * 10 ** power))
    .filter((one) => one > least && one < most);
}

/** Stretches of one length along an axis of numbers. */
export interface Stretches {
  /** In which one a value is. */
  readonly of: (value: Value | undefined) => number | undefined;
  /** What numbers those have in which there are any, such as "0.001 to 0.0082", ascending. */
  readonly labels: ReadonlyMap<number, string>;
}

export function stretchesOf(name: string, numbers: readonly number[], { scale, count }: { scale: Scale | undefined; count: number }): Stretches {
  const axis = axisOf(name, numbers, scale);
  const of = (value: Value | undefined) => {
    const share = axis.place(value);
    return share === undefined ? undefined : Math.min(count - 1, Math.floor(share * count));
  };
  const members = groupBy([...numbers].sort((a, b) => a - b), of);
  const label = (some: readonly number[]) => [...new Set([some[0], some.at(-1)].map(shortNumber))].join(" to ");
  return { of, labels: new Map([...members].flatMap(([at, some]) => (at === undefined ? [] : [[at, label(some)]]))) };
}

function choiceAxis(name: string, values: readonly Value[]): Axis {
  const choices = [...new Set(values.map(String))].sort();
  const at = (index: number) => (choices.length > 1 ? index / (choices.length - 1) : 0.5);
  const places = new Map(choices.map((choice, index) => [choice, at(index)]));
  return {
    name,
    place: (value) => (value === undefined ? undefined : places.get(String(value))),
    ticks: choices.slice(0, MOST_TICKS).map((text, index) => ({ at: at(index), text })),
  };
}

/** The least and the most of some numbers, of which there may be very many. */
function bounds(numbers: readonly number[]): [number, number] {
  return numbers.reduce<[number, number]>(([least, most], one) => [Math.min(least, one), Math.max(most, one)], [Infinity, -Infinity]);
}

/** Reads names of axes as the URL has them; what is wrong there is left out. */
export function readAxes(text: string): string[] {
  return [...new Set(text.split(",").flatMap((one) => decoded(one) || []))];
}
