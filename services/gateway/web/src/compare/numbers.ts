// Numbers of trials and experiments in a URL.

/** Most trials that are compared at once. */
export const MOST_SUBJECTS = 12;

/** Reads a list of numbers, such as "3,1,7"; what is wrong there is left out, and each comes once. */
export function numbersOf(text: string): bigint[] {
  const numbers = text.split(",").filter((one) => /^[1-9]\d{0,17}$/.test(one)).map(BigInt);
  return [...new Set(numbers)].slice(0, MOST_SUBJECTS);
}
