import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test, vi } from "vitest";
import { type Experiment, ExperimentActivity, ExperimentSchema, ExperimentState } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import { Pages } from "$src/api/pages.svelte";
import { RequestIds } from "$src/api/requestId";
import { cellKey } from "$src/experiments/cellValues.svelte";
import { COLUMNS } from "$src/experiments/columns";
import { completions } from "$src/experiments/filter";
import { metricColumnOf, serverOrder, sortedByValue } from "$src/experiments/order";
import { endedSince } from "$src/now/ended";
import { totalsOf } from "$src/experiments/totals";

vi.mock("$src/api/services", () => ({ services: {}, within: () => ({}) }));

const experiment = (number: number, searcherMetric: string, smallerIsBetter: boolean): Experiment =>
  create(ExperimentSchema, { number: BigInt(number), experimentId: String(number), searcherMetric, smallerIsBetter });

test("the word that is typed is completed, with what the shown rows have", () => {
  const known = { label: ["base line", "b2", "b2"], owner: ["me", "ada"] };
  expect(completions("net sta", known)).toEqual(["net state:"]);
  expect(completions("state:pa", known)).toEqual(["state:paused"]);
  expect(completions("x label:b", known)).toEqual(["x label:b2"]);
  expect(completions("owner:ada", known)).toEqual([]);
  expect(completions("", known)).toContain("archived:");
});

test("best values are sorted for each metric for itself, and rows without one come last", () => {
  const rows = [experiment(1, "loss", true), experiment(2, "accuracy", false), experiment(3, "loss", true), experiment(4, "loss", true), experiment(5, "accuracy", false)];
  const values = new Map([[1, 0.5], [2, 0.8], [3, 0.1], [5, 0.9]].map(([number, value]) => [cellKey(String(number), "best"), { value: value ?? 0, steps: 1n }]));
  const column = metricColumnOf("best", COLUMNS);
  if (!column) throw new Error("there is a column of best values");
  expect(sortedByValue(rows, column, "best", values).map(({ number }) => Number(number))).toEqual([5, 2, 3, 1, 4]);
  expect(sortedByValue(rows, column, "best desc", values).map(({ number }) => Number(number))).toEqual([2, 5, 1, 3, 4]);
  expect(metricColumnOf("state desc", COLUMNS)).toBeUndefined();
});

test("the server is asked for orders that it keeps alone, whatever columns are shown", () => {
  expect(["name", "create_time desc", "number"].map(serverOrder)).toEqual(["name", "create_time desc", "number"]);
  expect(["best", "best desc", "max:validation%2Faccuracy", "left", ""].map(serverOrder)).toEqual(Array(5).fill("number desc"));
});

test("a form that is sent again has the same id, and another content one of its own", () => {
  const ids = new RequestIds();
  const first = ids.of(["a", 30]);
  expect(ids.of(["a", 30])).toBe(first);
  expect(ids.of(["b", 30])).not.toBe(first);
});

describe("a list that is read page by page", () => {
  const page = (token: string) => Promise.resolve({ items: [`item ${token || "1"}`], nextPageToken: token ? "" : "2" });

  test("reads no page twice, however often it is asked for", async () => {
    const [pages, asked] = [new Pages<string>(), [] as string[]];
    pages.begin((token) => (asked.push(token), page(token)));
    await vi.waitFor(() => expect(pages.busy).toBe(false));
    await Promise.all([pages.more(), pages.more()]);
    expect([asked, pages.items, pages.hasMore]).toEqual([["", "2"], ["item 1", "item 2"], false]);
  });

  test("shows nothing of a query that another has followed", async () => {
    const pages = new Pages<string>();
    let answer = (_: string) => undefined as void;
    const end = pages.begin(async () => ({ items: [await new Promise<string>((resolve) => (answer = resolve))], nextPageToken: "" }));
    end();
    pages.begin(page);
    await vi.waitFor(() => expect(pages.items).toEqual(["item 1"]));
    answer("late");
    await Promise.resolve();
    expect([pages.items, pages.busy]).toEqual([["item 1"], false]);
  });
});

test("totals count experiments, their trials and their states", () => {
  const running = { state: ExperimentState.ACTIVE, activity: ExperimentActivity.RUNNING, trialCount: 3n };
  const list = [create(ExperimentSchema, running), create(ExperimentSchema, running), create(ExperimentSchema, { state: ExperimentState.ERROR, trialCount: 1n })];
  expect(totalsOf(list)).toBe("3 experiments with 7 trials: 2 running, 1 failed");
});

test("what ended since somebody looked", () => {
  const ended = [5, 4, 3, 2, 1].map((at) => create(ExperimentSchema, { number: BigInt(at), endTime: timestampFromMs(at * 1000) }));
  expect(endedSince(ended, 3500).map(({ number }) => number)).toEqual([5n, 4n]);
  expect(endedSince(ended, 9000)).toEqual([]);
});
