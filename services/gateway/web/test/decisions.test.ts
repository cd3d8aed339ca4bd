import { create } from "@bufbuild/protobuf";
import { beforeEach, expect, it, vi } from "vitest";
import { ListEventsResponseSchema } from "$gen/resolute/api/searcher/v1/searcher_service_pb.js";
import { readDecisions } from "$src/search/decisions";

const { listEvents } = vi.hoisted(() => ({ listEvents: vi.fn() }));
vi.mock("$src/api/services", () => ({ services: { searcher: { listEvents } }, within: (signal: AbortSignal) => ({ signal }) }));

const entry = (sequence: number, created?: string) => ({
  event: { sequence: BigInt(sequence) },
  operations: created ? [{ kind: { case: "create" as const, value: { trialKey: created } } }] : [],
});
const page = (entries: ReturnType<typeof entry>[], nextPageToken: string) => create(ListEventsResponseSchema, { entries, nextPageToken });
const read = () => readDecisions({ searchId: "s", trialKey: "mine" }, new AbortController().signal);

beforeEach(() => listEvents.mockReset());

it("finds what was decided about a trial that has been quiet for long behind empty pages", async () => {
  listEvents.mockResolvedValueOnce(page([], "a")).mockResolvedValueOnce(page([entry(7), entry(3, "mine")], "b"));
  expect((await read()).map(({ event }) => Number(event?.sequence))).toEqual([7, 3]);
  expect(listEvents.mock.calls.map(([{ pageToken }]) => pageToken)).toEqual(["", "a"]);
});

it("goes on behind the creation of another trial, to the end of the log", async () => {
  listEvents.mockResolvedValueOnce(page([entry(9, "another")], "a")).mockResolvedValueOnce(page([], ""));
  expect(await read()).toHaveLength(1);
  expect(listEvents).toHaveBeenCalledTimes(2);
});
