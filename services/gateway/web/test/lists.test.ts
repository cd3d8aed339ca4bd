import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test, vi } from "vitest";
import { ExperimentSchema, ExperimentState } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import { ExperimentTotalsSchema } from "$gen/resolute/api/experiments/v1/experiments_service_pb.js";
import { Pages } from "$src/api/pages.svelte";
import { RequestIds } from "$src/api/requestId";
import { cellKey } from "$src/experiments/cellValues.svelte";
import { chosenColumns, COLUMNS } from "$src/experiments/columns";
import { completions, isUnfinished } from "$src/experiments/filter";
import { metricColumnOf, serverOrder, sortedByValue } from "$src/experiments/order";
import { endedSince } from "$src/now/ended";
import { totalsText } from "$src/experiments/totals";

vi.mock("$src/api/services", () => ({ services: {}, within: () => ({}) }));

test("the word that is typed is completed, with what the shown rows have", () => {
  const known = { label: ["base line", "b2", "b2"], owner: ["me", "ada"] };
  expect(completions("net sta", known)).toEqual(["net state:", "net started < "]);
  expect(completions("state:pa", known)).toEqual(["state:paused"]);
  expect(completions("x label:b", known)).toEqual(["x label:b2"]);
  expect(completions("owner:ada", known)).toEqual([]);
  expect(completions("", known)).toContain("archived:");
});

test("fields, metrics and hyperparameters are suggested, each as it is written in a filter", () => {
  expect(completions("(lr", {}, ["lr", "val_loss"])).toEqual(["(lr < "]);
  expect(completions("my", {}, ["my rate"])).toEqual([]);
  expect(completions('"my', {}, ["my rate"])).toEqual(['"my rate" < ']);
  expect(completions("label:", { label: ['a "b"'] })).toEqual(['label:"a \\"b\\""']);
  expect(["label:", "lr <", "lr < 1", "lr", 'name = "'].map(isUnfinished)).toEqual([true, true, false, false, false]);
});

test("values of a metric are sorted, and rows without one come last", () => {
  const rows = [1, 2, 3].map((number) => create(ExperimentSchema, { number: BigInt(number), experimentId: String(number) }));
  const column = chosenColumns("state,max:validation%2Faccuracy").at(-1);
  if (!column?.metric) throw new Error("there is a column of a metric");
  const values = new Map([[1, 0.5], [3, 0.1]].map(([number, value]) => [cellKey(String(number), column.id), { value: value ?? 0, steps: 1n }]));
  expect(sortedByValue(rows, column, column.id, values).map(({ number }) => Number(number))).toEqual([3, 1, 2]);
  expect(sortedByValue(rows, column, `${column.id} desc`, values).map(({ number }) => Number(number))).toEqual([1, 3, 2]);
  expect(metricColumnOf(`${column.id} desc`, [column])).toBe(column);
  expect(metricColumnOf("best_validation", COLUMNS)).toBeUndefined();
});

test("the server is asked for orders that it keeps alone, whatever columns are shown", () => {
  expect(["name", "create_time desc", "number"].map(serverOrder)).toEqual(["name", "create_time desc", "number"]);
  expect(serverOrder("best_validation desc")).toBe("searcher_metric, best_validation desc");
  expect(["best", "max:validation%2Faccuracy", "left", ""].map(serverOrder)).toEqual(Array(4).fill("number desc"));
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

test("totals say how many experiments, trials and states match", () => {
  const states = [{ state: ExperimentState.ERROR, count: 1n }, { state: ExperimentState.ACTIVE, count: 20n }, { state: ExperimentState.CANCELED, killed: true, count: 3n }, { state: ExperimentState.CANCELED, count: 2n }];
  expect(totalsText(create(ExperimentTotalsSchema, { states, trials: 7n }))).toBe("26 experiments with 7 trials: 20 active, 3 killed, 2 canceled, 1 failed");
});

test("what ended since somebody looked", () => {
  const ended = [5, 4, 3, 2, 1].map((at) => create(ExperimentSchema, { number: BigInt(at), endTime: timestampFromMs(at * 1000) }));
  expect(endedSince(ended, 3500).map(({ number }) => number)).toEqual([5n, 4n]);
  expect(endedSince(ended, 9000)).toEqual([]);
});
