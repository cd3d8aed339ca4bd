// What completes the filter line. The server reads it: its language is that of the API and of the command line.

import { STATE_WORDS } from "$src/api/states";

/** What the shown experiments have, by the fields of the filter. */
export type Known = Readonly<Record<string, readonly string[]>>;

const NUMBERS = ["best", "trials", "progress", "id"];
const TIMES = ["created", "started", "ended"];

/** Whether a filter ends with a comparison whose value is still to be typed. */
export const isUnfinished = (line: string): boolean => /[:=<>!~]\s*$/.test(line);

/**
 * Lines that complete the word that is being typed, at most a dozen.
 *
 * @param names Names of metrics and hyperparameters, which are compared with numbers.
 */
export function completions(line: string, known: Known, names: readonly string[] = []): string[] {
  const word = /[^\s()]*$/.exec(line)?.[0] ?? "";
  const values: Known = { state: STATE_WORDS, archived: ["yes", "no", "any"], ...known };
  const fields = Object.entries(values).flatMap(([key, texts]) =>
    word.includes(":") ? [...new Set(texts)].map((text) => `${key}:${/[\s()"]/.test(text) ? JSON.stringify(text) : text}`) : [`${key}:`],
  );
  const compared = [...names.map(quoted), ...NUMBERS, ...TIMES].map((name) => `${name} < `);
  const before = line.slice(0, line.length - word.length);
  return [...fields, ...compared].filter((one) => one.startsWith(word) && one !== word).slice(0, 12).map((one) => before + one);
}

const quoted = (name: string): string => (/[\s()"<>=!~:]/.test(name) ? JSON.stringify(name) : name);
