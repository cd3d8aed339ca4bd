// Which lines are shown, as the URL has it.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { Level, type LineFilterSchema } from "$gen/resolute/api/logs/v1/line_pb.js";

export type Filter = MessageInitShape<typeof LineFilterSchema>;
/** Whose log is shown: that of a trial, or those of all trials of an experiment. */
export type Whose = { readonly trialId: string } | { readonly experimentId: string };

export const LEVELS: readonly (readonly [name: string, level: Level])[] = [
  ["debug", Level.DEBUG],
  ["info", Level.INFO],
  ["warning", Level.WARNING],
  ["error", Level.ERROR],
];

/** The parameters of a URL that decide which lines are shown. */
export const FILTER_PARAMETERS = ["rank", "level", "text", "regex", "all", "from", "until"] as const;

/** A moment for the URL, where it means the same in every time zone; nothing for the text of an empty field. */
export function moment(local: string): string {
  const ms = Date.parse(local);
  return Number.isFinite(ms) ? new Date(ms).toISOString() : "";
}

/** A moment of the URL as a field for times has it, in the zone of the browser. */
export function localTime(text: string): string {
  const ms = Date.parse(text);
  if (!Number.isFinite(ms)) return "";
  return new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** A time of the contract; nothing where milliseconds are none. */
export function timeAt(ms: number): { seconds: bigint; nanos: number } | undefined {
  return Number.isFinite(ms) ? { seconds: BigInt(Math.floor(ms / 1000)), nanos: Math.floor(ms % 1000) * 1_000_000 } : undefined;
}

/** What finds the text that is searched for; nothing where there is none. */
export function matching(parameter: (name: string) => string): Pick<Filter, "text" | "regex"> {
  const text = parameter("text");
  return parameter("regex") === "1" ? { regex: text } : { text };
}

/** A filter of a log, from the parameters of a URL. What is wrong there counts as not given. */
export function lineFilter(whose: Whose, parameter: (name: string) => string): Filter {
  const ranks = parameter("rank")
    .split(",")
    .filter((one) => /^\d{1,6}$/.test(one))
    .map(Number);
  const minLevel = LEVELS.find(([name]) => name === parameter("level"))?.[1] ?? Level.UNSPECIFIED;
  const [startTime, endTime] = [timeAt(Date.parse(parameter("from"))), timeAt(Date.parse(parameter("until")))];
  return {
    ...whose,
    ranks,
    minLevel,
    ...(parameter("all") === "1" ? {} : matching(parameter)),
    ...(startTime ? { startTime } : {}),
    ...(endTime ? { endTime } : {}),
  };
}

/** The number of a line that a URL links to; nothing where it is none. */
export const lineOf = (text: string): bigint | undefined => (/^\d{1,18}$/.test(text) ? BigInt(text) : undefined);

/** Where somebody wants to go: to a line by its number, or to a time of day or a moment, in milliseconds; nothing for other texts. */
export function placeOf(text: string, day: number): { readonly line: bigint } | { readonly time: number } | undefined {
  const wanted = text.trim();
  const line = lineOf(wanted);
  if (line !== undefined) return { line };
  const [, hours, minutes, seconds = "0"] = /^(\d{1,2}):(\d{2})(?::(\d{2}))?$/.exec(wanted) ?? [];
  const time = hours ? new Date(day).setHours(Number(hours), Number(minutes), Number(seconds), 0) : Date.parse(wanted);
  return Number.isFinite(time) ? { time } : undefined;
}
