// Ranges of axes: as the URL has them, and as a person moves them.

export type Range = readonly [least: number, most: number];
/** Ranges by the names of what they are of. */
export type Ranges = ReadonlyMap<string, Range>;

/** What was encoded for a URL; nothing where it is no text. */
export function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Reads a range such as "10~20.5"; nothing where it is none. */
export function readRange(text: string): Range | undefined {
  const [least, most] = text.split("~").map((one) => (one.trim() ? Number(one) : NaN));
  return least !== undefined && most !== undefined && Number.isFinite(least) && Number.isFinite(most) && least < most ? [least, most] : undefined;
}

/** Of a bound: in a shorter range, ticks are too close for floating-point numbers to tell them apart. */
const SHORTEST = 1e-12;

/** A range where an axis can show it; a logarithmic axis begins above zero. */
export function drawable(range: Range | undefined, { log = false } = {}): Range | undefined {
  if (!range || (log && range[0] <= 0)) return undefined;
  return range[1] - range[0] > SHORTEST * Math.max(...range.map(Math.abs)) ? range : undefined;
}

export const writtenRange = (range: Range | undefined): string => (range ? range.map((bound) => String(Number(bound.toPrecision(8)))).join("~") : "");

/** Reads ranges such as "lr~0.1~0.5,depth~0~0.2"; what is wrong is left out. */
export function readRanges(text: string): Ranges {
  return new Map(
    text.split(",").flatMap((one) => {
      const at = one.indexOf("~");
      const [name, range] = [decoded(one.slice(0, Math.max(0, at))), readRange(one.slice(at + 1))];
      return name && range ? [[name, range] as const] : [];
    }),
  );
}

export const writtenRanges = (ranges: Ranges): string =>
  [...ranges].map(([name, range]) => `${encodeURIComponent(name).replaceAll("~", "%7E")}~${writtenRange(range)}`).join(",");

/** Some ranges with one of them changed, or left out. */
export function changedRanges(ranges: Ranges, name: string, range: Range | undefined): Ranges {
  const changed = new Map(ranges);
  changed.delete(name);
  return range ? changed.set(name, range) : changed;
}

/** Moves a range by a share of its length, or makes it shorter or longer around a place. */
export interface Move {
  /** Of its length; negative towards smaller values. */
  readonly by?: number;
  /** Its new length, as a share of the old one. */
  readonly length?: number;
  /** What stays where it is, as a share of the range; its middle where not said. */
  readonly around?: number;
}

/** A range that was moved; on a logarithmic axis by its exponents. */
export function moved([least, most]: Range, { by = 0, length = 1, around = 0.5 }: Move, { log = false } = {}): Range {
  const isLog = log && least > 0;
  const [low, high] = isLog ? [Math.log(least), Math.log(most)] : [least, most];
  const span = high - low;
  const begin = low + by * span + around * span * (1 - length);
  const bounds = [begin, begin + span * length] as const;
  return isLog ? [Math.exp(bounds[0]), Math.exp(bounds[1])] : bounds;
}
