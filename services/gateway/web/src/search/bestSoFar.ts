// The best value of a search's metric as time went on.

import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { LogEntry } from "$gen/resolute/api/searcher/v1/event_pb.js";
import type { Points } from "$src/plots/series";

/** A point for each report that was better than all before; by the position of the event and its time. */
export function bestSoFar(entries: readonly LogEntry[], smallerIsBetter: boolean): Points {
  const [steps, values, times]: [number[], number[], number[]] = [[], [], []];
  const add = ({ event }: LogEntry, value: number, secondsBefore = 0) => {
    steps.push(Number(event?.sequence ?? 0n));
    values.push(value);
    times.push((event?.appendTime ? timestampMs(event.appendTime) / 1000 : 0) - secondsBefore);
  };
  let best: number | undefined;
  for (const entry of entries) {
    const kind = entry.event?.kind;
    if (kind?.case !== "validationCompleted" && kind?.case !== "validationReported") continue;
    const { metric } = kind.value;
    if (!Number.isFinite(metric) || (best !== undefined && (smallerIsBetter ? metric >= best : metric <= best))) continue;
    if (best !== undefined) add(entry, best, 1e-3); // the line is level up to its step
    add(entry, (best = metric));
  }
  const last = entries.at(-1);
  if (best !== undefined && last) add(last, best);
  return { steps, values, times };
}
