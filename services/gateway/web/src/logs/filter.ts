// Which lines are shown, as the URL has it.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { Level, type LineFilterSchema } from "$gen/resolute/api/logs/v1/line_pb.js";

export const LEVELS: readonly (readonly [name: string, level: Level])[] = [
  ["debug", Level.DEBUG],
  ["info", Level.INFO],
  ["warning", Level.WARNING],
  ["error", Level.ERROR],
];

/** A filter of a trial's log, from the parameters of a URL. What is wrong there counts as not given. */
export function lineFilter(trialId: string, parameter: (name: string) => string): MessageInitShape<typeof LineFilterSchema> {
  const ranks = parameter("rank")
    .split(",")
    .filter((one) => /^\d{1,6}$/.test(one))
    .map(Number);
  const minLevel = LEVELS.find(([name]) => name === parameter("level"))?.[1] ?? Level.UNSPECIFIED;
  const text = parameter("text");
  return { trialId, ranks, minLevel, ...(parameter("regex") === "1" ? { regex: text } : { text }) };
}
