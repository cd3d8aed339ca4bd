// The exact colours of escape sequences: 256 of a palette, and any other.

/** Levels of red, green and blue in the cube of the palette. */
const LEVELS = [0, 95, 135, 175, 215, 255];
const [CUBE, GREYS, END] = [16, 232, 256];

/** A colour of the palette as CSS has it; nothing for those of the terminal's own and what is none. */
export function ofPalette(index: number): string | undefined {
  if (!Number.isInteger(index) || index < CUBE || index >= END) return undefined;
  if (index >= GREYS) return exact([8, 8, 8].map((one) => one + (index - GREYS) * 10));
  const place = index - CUBE;
  return exact([Math.floor(place / 36), Math.floor(place / 6) % 6, place % 6].map((one) => LEVELS[one] ?? 0));
}

/** Red, green and blue as CSS has them; nothing where they are none. */
export function exact(parts: readonly number[]): string | undefined {
  const isColor = parts.length === 3 && parts.every((one) => Number.isInteger(one) && one >= 0 && one <= 255);
  return isColor ? `rgb(${parts.join(" ")})` : undefined;
}
