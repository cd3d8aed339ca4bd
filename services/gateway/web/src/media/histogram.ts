// Histograms over steps: counts as shades, by value and step.

/** What one was logged as. */
export interface Histogram {
  readonly counts: readonly number[];
  /** One more than counts, ascending. */
  readonly edges: readonly number[];
  /** Values that are NaN or infinite. */
  readonly leftOut: number;
}

/** A rectangle of one shade, in shares of the width and the height of the drawing, from the lower left. */
export interface Cell {
  readonly x: number;
  readonly width: number;
  readonly y: number;
  readonly height: number;
  /** How dense the values are, beside the densest of the same step. */
  readonly share: number;
}

const isNumbers = (value: unknown): value is number[] => Array.isArray(value) && value.every((one) => typeof one === "number" && Number.isFinite(one));

/** Reads one; undefined where it is none. */
export function readHistogram(text: string): Histogram | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { counts, edges, left_out: leftOut } = (value ?? {}) as Record<string, unknown>;
  if (!isNumbers(counts) || !isNumbers(edges) || !counts.length || edges.length !== counts.length + 1) return undefined;
  return { counts, edges, leftOut: typeof leftOut === "number" ? leftOut : 0 };
}

/** The least and the largest value of several. */
export function spanOf(histograms: readonly Histogram[]): readonly [number, number] {
  const least = Math.min(...histograms.map(({ edges }) => edges[0] ?? 0));
  const most = Math.max(...histograms.map(({ edges }) => edges.at(-1) ?? 0));
  return most > least ? [least, most] : [least - 0.5, most + 0.5];
}

/** The cells of histograms, each in a column of its own. */
export function cellsOf(histograms: readonly Histogram[], [least, most]: readonly [number, number]): Cell[] {
  const place = (value: number) => (value - least) / (most - least);
  const width = 1 / histograms.length;
  return histograms.flatMap(({ counts, edges }, column) => {
    const density = counts.map((count, at) => count / Math.max((edges[at + 1] ?? 0) - (edges[at] ?? 0), Number.MIN_VALUE));
    const densest = Math.max(...density);
    return counts.flatMap((count, at) => {
      const [y, end] = [place(edges[at] ?? 0), place(edges[at + 1] ?? 0)];
      return count ? [{ x: column * width, width, y, height: end - y, share: (density[at] ?? 0) / densest }] : [];
    });
  });
}

/** The number of values between two. */
export const total = ({ counts }: Histogram): number => counts.reduce((sum, one) => sum + one, 0);
