// Where the rows of lines lie that break at the edge.

/** Pixels of one row. */
export const ROW = 18;
const TAB = 8;
// eslint-disable-next-line no-control-regex
const NARROW = /^[\u0020-\u007e]*$/;

/** How many rows a line takes. What is no plain letter may be two columns wide: too much room is better than too little. */
export function rowsOf(text: string, columns: number): number {
  if (NARROW.test(text)) return Math.max(1, Math.ceil(text.length / columns));
  let width = 0;
  for (const letter of text) width += letter === "\t" ? TAB : NARROW.test(letter) ? 1 : 2;
  return Math.max(1, Math.ceil(width / columns));
}

/** The places of lines below each other. */
export interface Layout {
  /** Pixels of all together. */
  readonly height: number;
  /** Where a line begins. */
  top(index: number): number;
  /** Which line is at a place. */
  at(y: number): number;
}

/** One row a line. */
export const single = (count: number): Layout => ({
  height: count * ROW,
  top: (index) => index * ROW,
  at: (y) => Math.max(0, Math.floor(y / ROW)),
});

/** As many rows as each line takes. */
export function wrapped(texts: readonly string[], columns: number): Layout {
  const tops = new Float64Array(texts.length + 1);
  for (const [index, text] of texts.entries()) tops[index + 1] = (tops[index] ?? 0) + rowsOf(text, columns) * ROW;
  return {
    height: tops[texts.length] ?? 0,
    top: (index) => tops[Math.min(Math.max(0, index), texts.length)] ?? 0,
    at(y) {
      let [low, high] = [0, texts.length];
      while (low < high - 1) {
        const middle = (low + high) >> 1;
        if ((tops[middle] ?? 0) <= y) low = middle;
        else high = middle;
      }
      return low;
    },
  };
}
