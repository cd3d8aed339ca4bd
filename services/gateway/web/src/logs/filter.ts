// Which lines are shown, as the URL has it.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { Level, type LineFilterSchema } from "$gen/resolute/api/logs/v1/line_pb.js";

export const LEVELS: readonly (readonly [name: string, level: Level])[] = [
  ["debug", Level.DEBUG],
  ["info", Level.INFO],
  ["warning", Level.WARNING],
  ["error", Level.ERROR],
];

/** The parameters of a URL that decide which lines are shown. */
export const FILTER_PARAMETERS = ["rank", "level", "text", "regex", "from", "until"] as const;

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

/** The time of a moment of the URL, such as "2026-01-31T12:00:00.000Z"; nothing where it is none. */
function timeOf(text: string): { seconds: bigint; nanos: number } | undefined {
  const ms = Date.parse(text);
  return Number.isFinite(ms) ? { seconds: BigInt(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1_000_000 } : undefined;
}

/** A filter of a trial's log, from the parameters of a URL. What is wrong there counts as not given. */
export function lineFilter(trialId: string, parameter: (name: string) => string): MessageInitShape<typeof LineFilterSchema> {
  const ranks = parameter("rank")
    .split(",")
    .filter((one) => /^\d{1,6}$/.test(one))
    .map(Number);
  const minLevel = LEVELS.find(([name]) => name === parameter("level"))?.[1] ?? Level.UNSPECIFIED;
  const text = parameter("text");
  const [startTime, endTime] = [timeOf(parameter("from")), timeOf(parameter("until"))];
  return {
    trialId,
    ranks,
    minLevel,
    ...(parameter("regex") === "1" ? { regex: text } : { text }),
    ...(startTime ? { startTime } : {}),
    ...(endTime ? { endTime } : {}),
  };
}

/** The number of a line that a URL links to; nothing where it is none. */
export const lineOf = (text: string): bigint | undefined => (/^\d{1,18}$/.test(text) ? BigInt(text) : undefined);
