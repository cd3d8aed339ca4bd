// Colours and dashes by which the trials of a view are told apart, also by colour-blind readers (after Paul Tol).

const LIGHT = ["#0077bb", "#cc3311", "#009988", "#b8860b", "#aa3377", "#33bbee", "#555555", "#ee7733", "#228833", "#6644aa"];
const DARK = ["#5ab4f0", "#ff7a5c", "#3fd0bd", "#e6b84a", "#e884bd", "#8edcff", "#b0b0b0", "#ffa66b", "#6fd08c", "#b49cff"];
/** The second ten trials of a view are dashed, the third dotted, the fourth both. */
const DASHES: readonly (readonly number[])[] = [[], [8, 4], [2, 3], [8, 3, 2, 3]];
const PLACES = LIGHT.length * DASHES.length;

export type Theme = "light" | "dark";

/** How a trial is drawn. */
export interface Mark {
  readonly color: string;
  /** Lengths of strokes and gaps in pixels; empty for a solid line. */
  readonly dash: readonly number[];
  /** Of the line, in pixels; thin where not said. */
  readonly width?: number;
}

/** The colour that a trial has by its number, where it stands for itself. */
export const trialColor = (number: bigint, theme: Theme): string => markAt(Number(number % BigInt(LIGHT.length)), theme).color;

/**
 * Gives each trial of a view a place of its own: that of its number, or the next that is free.
 *
 * @param before Places that were given before: a trial keeps its place as long as it is shown.
 */
export function placesOf(numbers: readonly bigint[], before: ReadonlyMap<bigint, number> = new Map()): Map<bigint, number> {
  const places = new Map<bigint, number>();
  for (const number of numbers) {
    const place = before.get(number);
    if (place !== undefined) places.set(number, place);
  }
  const taken = new Set(places.values());
  for (const number of numbers) {
    if (places.has(number)) continue;
    let place = Number(number % BigInt(LIGHT.length));
    while (taken.has(place) && taken.size < PLACES) place = (place + 1) % PLACES;
    taken.add(place);
    places.set(number, place);
  }
  return places;
}

/** The marks of trials by their places. */
export const marksOf = (places: ReadonlyMap<bigint, number>, theme: Theme): Map<bigint, Mark> =>
  new Map([...places].map(([number, place]) => [number, markAt(place, theme)]));

/** The mark of a place. After all combinations of colours and dashes they begin anew. */
export function markAt(place: number, theme: Theme): Mark {
  const colors = theme === "dark" ? DARK : LIGHT;
  return { color: colors[place % colors.length] ?? "gray", dash: DASHES[Math.floor(place / colors.length) % DASHES.length] ?? [] };
}

/** A mark with another dash, where colours say something else. */
export const dashed = <One extends Mark>(mark: One, index: number): One => ({ ...mark, dash: DASHES[index % DASHES.length] ?? [] });

/** A CSS background that shows a mark in a small square. */
export function swatch(mark: Mark | undefined): string {
  if (!mark?.dash.length) return mark?.color ?? "transparent";
  const stroke = Math.min(4, mark.dash[0] ?? 0);
  return `repeating-linear-gradient(90deg, ${mark.color} 0 ${stroke}px, transparent ${stroke}px ${stroke + 2}px)`;
}

/** From small to large: they differ in brightness too, for colour-blind readers. */
const RAMPS: Readonly<Record<Theme, readonly (readonly [number, number, number])[]>> = {
  light: [[35, 30, 130], [125, 20, 160], [200, 60, 115], [225, 125, 40]],
  dark: [[105, 120, 255], [180, 105, 245], [240, 115, 155], [255, 215, 100]],
};

/** The colour of a share from 0 to 1; grey where there is none. */
export function rampColor(share: number | undefined, theme: Theme): string {
  if (share === undefined) return "#8a8f98";
  const stops = RAMPS[theme];
  const at = Math.min(1, Math.max(0, share)) * (stops.length - 1);
  const [before, after] = [stops[Math.floor(at)] ?? [], stops[Math.ceil(at)] ?? []];
  return `rgb(${before.map((one, channel) => Math.round(one + (at % 1) * ((after[channel] ?? one) - one))).join(", ")})`;
}
