// What the machines of a run did, as charts: one for each kind of quantity, with a line for each machine, GPU or process.

import type { GetMachineUsageResponse_Container as Container } from "$gen/resolute/api/experiments/v1/trials_service_pb.js";
import type { Curve, Line } from "$src/curves/series";
import { markAt, type Theme } from "$src/plots/marks";

export interface MachineChart {
  readonly title: string;
  readonly curves: readonly Curve[];
  readonly lines: readonly Line[];
}

/** Titles, and the quantities that one chart has. */
const CHARTS: readonly (readonly [title: string, quantities: readonly string[]])[] = [
  ["GPU use, %", ["gpu_util"]],
  ["GPU memory, %", ["gpu_used_memory"]],
  ["GPU temperature, °C", ["gpu_temperature"]],
  ["GPU power, W", ["gpu_power"]],
  ["GPU held back by heat or power, share of the time", ["gpu_throttled"]],
  ["GPU memory errors", ["gpu_ecc_errors"]],
  ["GPU use by process, %", ["gpu_process_util"]],
  ["GPU memory by process, bytes", ["gpu_process_memory"]],
  ["PCIe, bytes/s", ["gpu_pcie_sent", "gpu_pcie_received"]],
  ["NVLink, bytes/s", ["gpu_nvlink_sent", "gpu_nvlink_received"]],
  ["Processors, %", ["cpu"]],
  ["Memory, % of its limit", ["memory"]],
  ["Disks, bytes/s", ["disk_read", "disk_write"]],
  ["Network, bytes/s", ["net_sent", "net_received"]],
];
const WORDS: readonly (readonly [end: RegExp, word: string])[] = [
  [/_sent$/, "sent"],
  [/_received$/, "received"],
  [/_read$/, "read"],
  [/_write$/, "written"],
];

/** Where a quantity was measured, as its name says: empty for the whole machine. */
export interface Place {
  readonly quantity: string;
  readonly gpu: string;
  readonly process: string;
}

/** Parts of a name such as "GPU-1.77.gpu_process_util". */
export function placeOf(name: string): Place {
  const parts = name.split(".");
  const quantity = parts.pop() ?? "";
  return { quantity, gpu: parts[0] ?? "", process: parts[1] ?? "" };
}

/** A GPU by the first digits of its UUID, which tell the few of a machine apart. */
export const gpuLabel = (uuid: string): string => (/^(?:GPU|MIG)-.{8}/.exec(uuid)?.[0] ?? uuid);

/** The charts of all that was measured. What nothing is known of is no chart. */
export function chartsOf(containers: readonly Container[], theme: Theme): MachineChart[] {
  const begin = Math.min(...containers.map(({ usage }) => usage?.startTime ?? Infinity));
  return CHARTS.flatMap(([title, quantities]): MachineChart[] => {
    const found = containers.flatMap((one) => seriesOf(one, quantities, { begin, many: containers.length > 1 }));
    if (!found.length) return [];
    const curves = found.map((one, index): Curve => ({ ...one, ...markAt(index, theme) }));
    return [{ title, curves, lines: curves.map((one, index) => ({ label: one.label, ...markAt(index, theme), ...drawn(found[index]) })) }];
  });
}

interface Series {
  readonly label: string;
  readonly points: Curve["points"];
  readonly x: readonly number[];
  readonly y: readonly (number | null)[];
}

const drawn = (one: Series | undefined) => ({ x: one?.x ?? [], y: one?.y ?? [] });

function seriesOf({ containerRank, usage }: Container, quantities: readonly string[], { begin, many }: { begin: number; many: boolean }): Series[] {
  if (!usage) return [];
  let passed = usage.startTime - begin;
  // A mean belongs to its whole period, and is drawn where that ends.
  const ends = usage.seconds.map((one) => (passed += one));
  return usage.series.flatMap(({ name, values }): Series[] => {
    const place = placeOf(name);
    if (!quantities.includes(place.quantity) || !values.some(Number.isFinite)) return [];
    const known = values.flatMap((value, at) => (Number.isFinite(value) ? [at] : []));
    const [steps, told] = [known.map((at) => Math.round(ends[at] ?? 0)), known.map((at) => values[at] ?? 0)];
    return [
      {
        label: labelOf(place, many ? `${usage.node} ${containerRank}` : ""),
        points: { steps, values: told, times: known.map((at) => begin + (ends[at] ?? 0)) },
        x: ends,
        y: values.map((value) => (Number.isFinite(value) ? value : null)),
      },
    ];
  });
}

function labelOf({ quantity, gpu, process }: Place, container: string): string {
  const way = WORDS.find(([end]) => end.test(quantity))?.[1] ?? "";
  const parts = [container, gpu && gpuLabel(gpu), process && `process ${process}`, way].filter(Boolean);
  return parts.join(" · ") || "machine";
}
