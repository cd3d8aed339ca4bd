// What trials have by which their lines are grouped or coloured: hyperparameters, their experiment, its labels.

import type { Trial } from "$gen/resolute/api/experiments/v1/trial_pb.js";
import { leafValues, numberOrText } from "$src/api/values";
import { axisOf, stretchesOf, type Axis, type Scale, type Value } from "$src/plots/axes";
import { markAt, rampColor, type Mark, type Theme } from "$src/plots/marks";
import { shortNumber } from "$src/ui/format";

/** Traits that are no hyperparameters, as the URL has them. */
export const [EXPERIMENT, LABELS] = ["@experiment", "@labels"] as const;

/** The traits of a trial by their names. */
export type Traits = ReadonlyMap<string, Value>;

/** An experiment, as far as its trials have it in common. */
export interface Origin {
  readonly number: bigint;
  readonly name: string;
  readonly labels: readonly string[];
}

/** What a trial has: its hyperparameters; with its experiment also that, and the labels of it together. */
export function traitsOf({ hparams }: Pick<Trial, "hparams">, origin?: Origin): Traits {
  const own = leafValues(hparams).map(([name, value]) => [name, numberOrText(value)] as const);
  if (!origin) return new Map(own);
  const labels = [...origin.labels].sort().join(", ") || "no label";
  return new Map<string, Value>([[EXPERIMENT, `${origin.number} ${origin.name}`], [LABELS, labels], ...own]);
}

/** Names of traits that differ between some trials, in the order in which they are met. */
export function differing(traits: Iterable<Traits>): string[] {
  const seen = new Map<string, Set<Value>>();
  for (const one of traits) for (const [name, value] of one) seen.set(name, (seen.get(name) ?? new Set()).add(value));
  return [...seen].filter(([, values]) => values.size > 1).map(([name]) => name);
}

/** How a trait is called in a choice. */
export const traitLabel = (name: string): string => (name === EXPERIMENT ? "experiment" : name === LABELS ? "labels" : name);

/** The values of a trait as choices, each with its label and its mark; those of many numbers by stretches of their axis. */
export interface Choices {
  readonly keys: readonly Key[];
  readonly of: (value: Value | undefined) => Key;
}

export interface Key {
  readonly label: string;
  readonly mark: Mark;
}

const [MOST_CHOICES, STRETCHES] = [12, 5];

export function choicesOf(name: string, traits: Iterable<Traits>, { theme, scale }: Look): Choices {
  const values = [...new Set([...traits].map((one) => one.get(name)))].sort(inOrder);
  const numbers = values.filter((one) => typeof one === "number");
  const stretches = numbers.length > MOST_CHOICES ? stretchesOf(name, numbers, { scale, count: STRETCHES }) : undefined;
  const labelOf = (value: Value | undefined): string => {
    const text = (typeof value === "number" && stretches?.labels.get(stretches.of(value) ?? -1)) || valueText(value);
    return name.startsWith("@") ? text : `${name} ${text}`;
  };
  const keys = [...new Set(values.map(labelOf))].map((label, at): Key => ({ label, mark: markAt(at, theme) }));
  const byLabel = new Map(keys.map((key) => [key.label, key]));
  const none: Key = { label: labelOf(undefined), mark: { color: rampColor(undefined, theme), dash: [] } };
  return { keys, of: (value) => byLabel.get(labelOf(value)) ?? none };
}

const valueText = (value: Value | undefined): string => (value === undefined ? "none" : typeof value === "number" ? shortNumber(value) : value);

/** Numbers by size, texts so that 2 comes before 10; what is missing comes last. */
function inOrder(a: Value | undefined, b: Value | undefined): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
  return typeof a === "number" && typeof b === "number" ? a - b : naturally(String(a), String(b));
}

const { compare: naturally } = new Intl.Collator(undefined, { numeric: true });

/** How lines are coloured by a trait: numbers along a ramp, others as choices. */
export interface Coloring {
  readonly of: (value: Value | undefined) => Mark;
  readonly ramp: Ramp | undefined;
  readonly keys: readonly Key[];
}

export interface Ramp {
  readonly name: string;
  readonly axis: Axis;
}

interface Look {
  readonly theme: Theme;
  readonly scale: Scale | undefined;
}

export function coloringOf(name: string, traits: readonly Traits[], look: Look): Coloring {
  const values = traits.flatMap((one) => one.get(name) ?? []);
  if (!values.length || values.some((one) => typeof one !== "number")) {
    const choices = choicesOf(name, traits, look);
    return { of: (value) => choices.of(value).mark, ramp: undefined, keys: choices.keys };
  }
  const axis = axisOf(name, values, look.scale);
  return { of: (value) => ({ color: rampColor(axis.place(value), look.theme), dash: [] }), ramp: { name, axis }, keys: [] };
}
