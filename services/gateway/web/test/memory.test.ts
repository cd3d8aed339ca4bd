import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { ExperimentSchema } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import { ExperimentsService, GetExperimentResponseSchema } from "$gen/resolute/api/experiments/v1/experiments_service_pb.js";
import { Memory } from "$src/api/memory";

/** A cluster that answers while it is there, and the number of times that it was asked. */
function cluster() {
  const memory = new Memory();
  const state = { isThere: true, asked: 0, refusal: Code.Unavailable };
  const transport = createRouterTransport(
    ({ service }) => {
      service(ExperimentsService, {
        getExperiment: ({ experiment }) => {
          state.asked += 1;
          if (!state.isThere) throw new ConnectError("away", state.refusal);
          return create(GetExperimentResponseSchema, { experiment: create(ExperimentSchema, { number: experiment?.key.value as bigint, name: `asked ${state.asked}` }) });
        },
        pauseExperiment: () => {
          if (!state.isThere) throw new ConnectError("away", Code.Unavailable);
          return {};
        },
      });
    },
    { transport: { interceptors: [memory.remember] } },
  );
  const client = createClient(ExperimentsService, transport);
  const read = async (value: bigint) => (await client.getExperiment({ experiment: { key: { case: "number", value } } })).experiment?.name;
  return { memory, state, read, client };
}

describe("the memory of a tab", () => {
  it("gives the last answer to the same read while the cluster is away, and says so once", async () => {
    const { memory, state, read } = cluster();
    await read(1n);
    expect(await read(1n)).toBe("asked 2");
    expect(memory.takeUsed()).toBe(false);
    state.isThere = false;
    expect(await read(1n)).toBe("asked 2");
    expect([memory.takeUsed(), memory.takeUsed()]).toEqual([true, false]);
    await expect(read(2n)).rejects.toThrow("away");
    state.isThere = true;
    expect(await read(1n)).toBe("asked 5");
  });

  it("hides no refusal, no change that was not made, and nothing from who signs in next", async () => {
    const { memory, state, read, client } = cluster();
    await read(1n);
    await client.pauseExperiment({});
    state.isThere = false;
    await expect(client.pauseExperiment({})).rejects.toThrow("away");
    state.refusal = Code.NotFound;
    await expect(read(1n)).rejects.toThrow("away");
    state.refusal = Code.Unavailable;
    memory.clear();
    await expect(read(1n)).rejects.toThrow("away");
  });

  it("is bounded, and forgets what was read longest ago", async () => {
    const { state, read } = cluster();
    for (let number = 1n; number <= 49n; number += 1n) await read(number);
    state.isThere = false;
    await expect(read(1n)).rejects.toThrow("away");
    expect(await read(2n)).toBe("asked 2");
  });
});
