import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { MachineUsageSchema } from "$gen/resolute/api/experiments/v1/machine_usage_pb.js";
import { GetMachineUsageResponse_ContainerSchema } from "$gen/resolute/api/experiments/v1/trials_service_pb.js";
import { chartsOf, gpuLabel, placeOf } from "$src/machine/charts";
import { heatOf, warmth } from "$src/machine/heat";

const GPU = "GPU-11111111-2222-3333-4444-555555555555";
const usage = (series: Record<string, number[]>, { node = "desk", startTime = 1000, seconds = [10, 5] } = {}) =>
  create(MachineUsageSchema, { node, startTime, seconds, series: Object.entries(series).map(([name, values]) => ({ name, values })) });
const container = (containerRank: number, one: ReturnType<typeof usage>) => create(GetMachineUsageResponse_ContainerSchema, { containerRank, usage: one });

describe("charts of a machine", () => {
  it("have a line for each GPU and direction, and none of what nobody measured", () => {
    const charts = chartsOf([container(0, usage({ cpu: [10, 20], [`${GPU}.gpu_util`]: [NaN, 50], net_sent: [1, 2], net_received: [3, 4], memory: [NaN, NaN], other: [1, 1] }))], "light");
    expect(charts.map(({ title, lines }) => [title, lines.map(({ label }) => label)])).toEqual([
      ["GPU use, %", ["GPU-11111111"]],
      ["Processors, %", ["machine"]],
      ["Network, bytes/s", ["sent", "received"]],
    ]);
    expect(charts[0]?.lines[0]).toMatchObject({ x: [10, 15], y: [null, 50] });
    expect(charts[0]?.curves[0]?.points).toEqual({ steps: [15], values: [50], times: [1015] });
  });

  it("have one time for the containers of a run, which begin one after the other", () => {
    const [chart] = chartsOf([container(0, usage({ cpu: [1, 2] })), container(1, usage({ cpu: [3, 4] }, { node: "two", startTime: 1030 }))], "dark");
    expect(chart?.lines.map(({ label, x }) => [label, x])).toEqual([
      ["desk 0", [10, 15]],
      ["two 1", [40, 45]],
    ]);
  });

  it("tell the processes of a GPU apart", () => {
    expect(placeOf(`${GPU}.77.gpu_process_util`)).toEqual({ quantity: "gpu_process_util", gpu: GPU, process: "77" });
    const [chart] = chartsOf([container(0, usage({ [`${GPU}.77.gpu_process_util`]: [1, 2] }))], "light");
    expect(chart?.lines[0]?.label).toBe("GPU-11111111 · process 77");
    expect(gpuLabel("odd")).toBe("odd");
  });

  it("of nothing are none", () => expect(chartsOf([], "light")).toEqual([]));
});

describe("heat", () => {
  it("is that of each node and of each of its GPUs, with who works there", () => {
    const worker = (trialNumber: bigint) => ({ trialNumber, owner: "ada" });
    const gpu = { [`${GPU}.gpu_util`]: [0, 80], [`${GPU}.gpu_used_memory`]: [0, 25], [`${GPU}.gpu_temperature`]: [0, 71] };
    const rows = heatOf([
      { worker: worker(7n), usage: usage({ cpu: [0, 30], memory: [0, 50], ...gpu }, { node: "node10" }) },
      { worker: worker(3n), usage: usage({ cpu: [0, 35], memory: [0, NaN] }, { node: "node10" }) },
      { worker: worker(4n), usage: usage({}, { node: "node9" }) },
    ]);
    expect(rows.map((one) => [one.node, one.gpu, one.use, one.memory, one.celsius, one.workers.map(({ trialNumber }) => trialNumber)])).toEqual([
      ["node9", "", undefined, undefined, undefined, [4n]],
      ["node10", "", 0.35, 0.5, undefined, [3n, 7n]],
      ["node10", GPU, 0.8, 0.25, 71, [7n]],
    ]);
  });

  it("of a temperature is between a room and the limit of a GPU", () => {
    expect([10, 25, 57.5, 90, 120, undefined].map(warmth)).toEqual([0, 0, 0.5, 1, 1, undefined]);
  });
});
