// Axes of plots of hyperparameters: numbers, linear or logarithmic, and choices.

import { shortNumber } from "$src/ui/format";

export type Value = number | string;

export interface Axis {
  readonly name: string;
  /** Where a value is, from 0 to 1; nothing where it is not on this axis. */
  readonly place: (value: Value | undefined) => number | undefined;
  readonly ticks: readonly { readonly at: number; readonly text: string }[];
}

/** Numbers above zero that span as much are drawn on a logarithmic axis. */
const LOG_FROM = 50;
const MOST_TICKS = 12;

/** An axis on which some values are. */
export function axisOf(name: string, values: readonly Value[]): Axis {
  const numbers = values.filter((one): one is number => typeof one === "number" && Number.isFinite(one));
  return numbers.length && values.every((one) => typeof one === "number") ? numberAxis(name, numbers) : choiceAxis(name, values);
}

function numberAxis(name: string, numbers: readonly number[]): Axis {
  const [least, most] = bounds(numbers);
  const isLog = least > 0 && most / least >= LOG_FROM;
  const scaled = isLog ? Math.log : (value: number) => value;
  const unscaled = isLog ? Math.exp : (value: number) => value;
  const [low, span] = [scaled(least), scaled(most) - scaled(least)];
  return {
    name,
    place: (value) => {
      if (typeof value !== "number" || !Number.isFinite(value) || (isLog && value <= 0)) return undefined;
      return span ? (scaled(value) - low) / span : 0.5;
    },
    ticks: span
      ? marksOf(numbers, low, span, unscaled).map((value) => ({ at: (scaled(value) - low) / span, text: shortNumber(value) }))
      : [{ at: 0.5, text: shortNumber(least) }],
  };
}

/** The numbers themselves where they are whole and few; otherwise five at equal distances. */
function marksOf(numbers: readonly number[], low: number, span: number, unscaled: (value: number) => number): number[] {
  const distinct = [...new Set(numbers)];
  if (distinct.length <= MOST_TICKS && distinct.every(Number.isInteger)) return distinct.sort((a, b) => a - b);
  return [0, 0.25, 0.5, 0.75, 1].map((at) => unscaled(low + at * span));
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

/** What was encoded for a URL; nothing where it is no text. */
function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

export type Brushes = ReadonlyMap<string, readonly [least: number, most: number]>;

/** Reads brushes as the URL has them, such as "lr~0.1~0.5,depth~0~0.2"; what is wrong is left out. */
export function readBrushes(text: string): Brushes {
  const parts = text.split(",").filter(Boolean).map((one) => one.split("~"));
  return new Map(
    parts.flatMap(([name, least, most]) => {
      const range = [Number(least), Number(most)] as const;
      const axis = decoded(name ?? "");
      return axis && range[0] < range[1] ? [[axis, range] as const] : [];
    }),
  );
}

export const writtenBrushes = (brushes: Brushes): string =>
  [...brushes].map(([name, [least, most]]) => `${encodeURIComponent(name).replaceAll("~", "%7E")}~${least.toFixed(3)}~${most.toFixed(3)}`).join(",");
