// Colours of trials: by number, the same on every view, and apart for colour-blind readers (after Paul Tol).

const LIGHT = ["#0077bb", "#cc3311", "#009988", "#b8860b", "#aa3377", "#33bbee", "#555555", "#ee7733", "#228833", "#6644aa"];
const DARK = ["#5ab4f0", "#ff7a5c", "#3fd0bd", "#e6b84a", "#e884bd", "#8edcff", "#b0b0b0", "#ffa66b", "#6fd08c", "#b49cff"];

/** The colour of a trial in a theme. */
export function trialColor(number: bigint, theme: "light" | "dark"): string {
  const colors = theme === "dark" ? DARK : LIGHT;
  return colors[Number(number % BigInt(colors.length))] ?? "gray";
}

/** Colours of trials that are shown together: where two would have the same one, the later takes the next that is free. */
export function trialColors(numbers: readonly bigint[], theme: "light" | "dark"): Map<bigint, string> {
  const count = BigInt(LIGHT.length);
  const taken = new Set<bigint>();
  const found = new Map<bigint, string>();
  for (const number of numbers) {
    let place = number % count;
    while (taken.has(place) && taken.size < LIGHT.length) place = (place + 1n) % count;
    taken.add(place);
    found.set(number, trialColor(place, theme));
  }
  return found;
}
