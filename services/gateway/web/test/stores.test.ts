import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ExperimentSchema } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import { GetExperimentResponseSchema, WatchExperimentsResponseSchema } from "$gen/resolute/api/experiments/v1/experiments_service_pb.js";
import { TrialSchema } from "$gen/resolute/api/experiments/v1/trial_pb.js";
import { GetTrialResponseSchema, ListTrialsResponseSchema } from "$gen/resolute/api/experiments/v1/trials_service_pb.js";
import { WatchResponseSchema } from "$gen/resolute/api/gateway/v1/gateway_service_pb.js";
import { LineSchema } from "$gen/resolute/api/logs/v1/line_pb.js";
import { ListLinesResponseSchema } from "$gen/resolute/api/logs/v1/logs_service_pb.js";
import { ListSummariesResponseSchema } from "$gen/resolute/api/metrics/v1/metrics_service_pb.js";
import type { MergedRequest, Subscription } from "$src/live/subscription";
import { metricOrder } from "$src/experiment/ranking";
import { ExperimentStore } from "$src/experiment/store.svelte";
import { TrialWindow } from "$src/experiment/trialWindow.svelte";
import { LogStore, MOST_LINES } from "$src/logs/store.svelte";
import { TrialStore } from "$src/trial/store.svelte";

const { listLines, getExperiment, getTrial, listSummaries, listTrials, watch } = vi.hoisted(() => ({
  listLines: vi.fn(),
  getExperiment: vi.fn(),
  getTrial: vi.fn(),
  listSummaries: vi.fn(),
  listTrials: vi.fn(),
  watch: vi.fn(),
}));
vi.mock("$src/api/services", () => ({
  services: { logs: { listLines }, experiments: { getExperiment }, metrics: { listSummaries }, trials: { getTrial, listTrials } },
  within: (signal: AbortSignal) => ({ signal }),
}));
vi.mock("$src/live/live.svelte", () => ({ watch }));
vi.mock("$client/interceptors.js", () => ({ pause: () => Promise.resolve() }));

const lost = () => new ConnectError("gone", Code.Unavailable);
let watched: Promise<Subscription>;

beforeEach(() => {
  for (const mock of [listLines, getExperiment, getTrial, listSummaries, listTrials, watch]) mock.mockReset();
  watched = new Promise((tell) => watch.mockImplementation((subscription: Subscription) => (tell(subscription), () => undefined)));
});

const line = (id: number) => create(LineSchema, { lineId: BigInt(id) });
const lines = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, index) => line(first + index));
const page = (ids: number[], nextPageToken: string) => create(ListLinesResponseSchema, { lines: ids.map(line), nextPageToken });
const ids = (store: LogStore) => store.lines.map(({ lineId }) => Number(lineId));

function asked(subscription: Subscription): MergedRequest {
  const request: MergedRequest = { experiments: [], queue: undefined, searches: [], series: [], lines: [] };
  subscription.join(request, "1");
  return request;
}

describe("an experiment", () => {
  const state = (etag: string, notes?: string) =>
    create(ExperimentSchema, { number: 1n, revision: BigInt(etag), etag, ...(notes === undefined ? {} : { notes, config: { kind: { case: "nullValue" as const, value: 0 as const } } }) });
  const answer = (etag: string, notes?: string) => create(GetExperimentResponseSchema, { experiment: state(etag, notes) });

  it("whose notes somebody else changed has no etag that lets old notes replace them", async () => {
    getExperiment.mockResolvedValueOnce(answer("1")).mockResolvedValueOnce(answer("1", "mine"));
    const store = new ExperimentStore(1n);
    store.follow();
    store.loadWhole();
    const subscription = await watched;
    await vi.waitFor(() => expect(store.experiment?.notes).toBe("mine"));
    let tell = (_: unknown) => undefined as void;
    getExperiment.mockReturnValueOnce(new Promise((resolve) => (tell = resolve)));
    const change = create(WatchExperimentsResponseSchema, { change: { case: "experimentChange", value: { experiment: state("2") } } });
    for (let times = 0; times < 3; times += 1) subscription.take({ case: "experiments", value: change });
    expect(store.experiment).toMatchObject({ notes: "mine", etag: "1", revision: 2n });
    tell(answer("2", "theirs"));
    await vi.waitFor(() => expect(store.experiment).toMatchObject({ notes: "theirs", etag: "2" }));
    expect(getExperiment).toHaveBeenCalledTimes(3);
  });
});

describe("a log", () => {
  const come = (subscription: Subscription, first: number, last: number) =>
    subscription.take(create(WatchResponseSchema, { event: { case: "lines", value: { lines: lines(first, last), cursor: BigInt(last) } } }).event);

  it("goes on loading while a page is empty and has more behind it", async () => {
    listLines.mockResolvedValueOnce(page([], "a")).mockResolvedValueOnce(page([], "b")).mockResolvedValueOnce(page([8, 7], "c"));
    const store = new LogStore({ trialId: "t" });
    store.follow();
    expect(asked(await watched).lines).toMatchObject([{ afterLineId: 8n }]);
    expect(ids(store)).toEqual([7, 8]);
    expect(listLines.mock.calls.map(([request]) => request.pageToken)).toEqual(["", "a", "b"]);
    listLines.mockResolvedValueOnce(page([], "d")).mockResolvedValueOnce(page([2], ""));
    await store.loadOlder();
    expect(ids(store)).toEqual([2, 7, 8]);
    expect(store.hasOlder).toBe(false);
  });

  it("without a line has no older ones, and each that comes is shown once", async () => {
    listLines.mockResolvedValueOnce(page([], "a")).mockResolvedValueOnce(page([], ""));
    const store = new LogStore({ trialId: "t" });
    store.follow();
    const subscription = await watched;
    expect(store.hasOlder).toBe(false);
    come(subscription, 1, 2);
    expect(ids(store)).toEqual([1, 2]);
  });

  it("loads older lines again after they were left out, but not where that was under way", async () => {
    listLines.mockResolvedValueOnce(page([10], "a"));
    const store = new LogStore({ trialId: "t" });
    store.follow();
    const subscription = await watched;
    let answer: (answer: unknown) => void = () => undefined;
    listLines.mockReturnValueOnce(new Promise((resolve) => (answer = resolve)));
    const older = store.loadOlder();
    come(subscription, 11, 10 + MOST_LINES);
    answer(page([9], "b"));
    await older;
    expect(ids(store).slice(0, 2)).toEqual([11, 12]);
    expect([store.lines.length, store.hasOlder]).toEqual([MOST_LINES, true]);
    listLines.mockResolvedValueOnce(page([10, 9], "c"));
    await store.loadOlder();
    expect(listLines.mock.lastCall?.[0]).toMatchObject({ behindLineId: 11n, orderBy: "line_id desc" });
    expect([ids(store).slice(0, 2), store.lines.length, store.hasNewer]).toEqual([[9, 10], MOST_LINES, true]);
    come(subscription, 20 + MOST_LINES, 20 + MOST_LINES); // between it and the rest are lines that are to be loaded
    expect(ids(store).at(-1)).toBe(8 + MOST_LINES);
  });

  it("is shown around the line that a link names, and follows once its newest lines are loaded", async () => {
    listLines.mockResolvedValueOnce(page([3, 2], "a")).mockResolvedValueOnce(page([4, 5], "b"));
    const store = new LogStore({ trialId: "t" });
    store.follow(3n);
    await vi.waitFor(() => expect(ids(store)).toEqual([2, 3, 4, 5]), { timeout: 60_000 });
    expect(listLines.mock.calls.map(([request]) => [request.behindLineId, request.orderBy])).toEqual([[4n, "line_id desc"], [3n, ""]]);
    expect([store.hasOlder, store.hasNewer, store.covers(1n), store.covers(4n), store.covers(6n)]).toEqual([true, true, false, true, false]);
    expect(watch).not.toHaveBeenCalled();
    listLines.mockResolvedValueOnce(page([7], ""));
    await store.loadNewer();
    expect(asked(await watched).lines).toMatchObject([{ afterLineId: 7n }]);
    expect([ids(store).at(-1), store.hasNewer, store.covers(9n)]).toEqual([7, false, true]);
  });

  it("finds the next line that matches, through pages without one", async () => {
    listLines.mockResolvedValueOnce(page([8], ""));
    const store = new LogStore({ trialId: "t" });
    store.follow();
    await watched;
    listLines.mockResolvedValueOnce(page([], "a")).mockResolvedValueOnce(page([5], "b")).mockResolvedValueOnce(page([], ""));
    expect(await store.find({ text: "loss" }, { behind: 2n })).toBe(5n);
    expect(listLines.mock.lastCall?.[0]).toMatchObject({ filter: { trialId: "t", text: "loss" }, behindLineId: 2n, pageSize: 1, pageToken: "a" });
    expect(await store.find({ text: "loss" }, { behind: 5n })).toBeUndefined();
  });

  it("reads until it succeeds, and then follows", async () => {
    listLines.mockRejectedValueOnce(lost()).mockRejectedValueOnce(lost()).mockResolvedValueOnce(page([3], ""));
    const store = new LogStore({ trialId: "t" });
    store.follow();
    expect(asked(await watched).lines).toMatchObject([{ afterLineId: 3n }]);
    expect(store.problem).toBe("");
  });

  it("does not repeat what is refused", async () => {
    listLines.mockRejectedValueOnce(new ConnectError("no such expression", Code.InvalidArgument));
    const store = new LogStore({ trialId: "t" });
    store.follow();
    await vi.waitFor(() => expect(store.problem).toBe("no such expression"), { timeout: 60_000 });
    expect(listLines).toHaveBeenCalledTimes(1);
    expect(watch).not.toHaveBeenCalled();
  });
});

describe("a trial", () => {
  const trial = (revision: number) => create(TrialSchema, { number: 5n, experimentNumber: 2n, revision: BigInt(revision) });
  const answer = (revision: number) => create(GetTrialResponseSchema, { trial: trial(revision) });
  const change = (subscription: Subscription, revision: number) => {
    const changed = { trials: [trial(revision)] };
    const value = { key: "1", change: { case: "experimentChange", value: changed } } as const;
    subscription.take(create(WatchResponseSchema, { event: { case: "experiments", value } }).event);
  };

  it("is read until that succeeds, and then followed", async () => {
    getTrial.mockRejectedValueOnce(new ConnectError("slow", Code.DeadlineExceeded)).mockResolvedValueOnce(answer(1));
    const store = new TrialStore(5n);
    store.follow();
    expect(asked(await watched).experiments).toMatchObject([{ afterRevision: 1n }]);
    expect([store.trial?.revision, store.problem]).toEqual([1n, ""]);
  });

  it("is read again after changes, one read at a time, and ends as its newest state", async () => {
    getTrial.mockResolvedValueOnce(answer(1));
    const store = new TrialStore(5n);
    store.follow();
    const subscription = await watched;
    let first: (answer: unknown) => void = () => undefined;
    getTrial.mockReturnValueOnce(new Promise((resolve) => (first = resolve))).mockResolvedValueOnce(answer(4));
    for (const revision of [2, 3, 4]) change(subscription, revision);
    expect(getTrial).toHaveBeenCalledTimes(2);
    first(answer(2));
    await vi.waitFor(() => expect(store.trial?.revision).toBe(4n), { timeout: 60_000 });
    expect(getTrial).toHaveBeenCalledTimes(3);
  });
});

describe("a window of trials", () => {
  const wanted = { number: 3n, orderBy: "best_validation", count: 50, maxHparams: 12 };
  const answer = (...numbers: number[]) => create(ListTrialsResponseSchema, { trials: numbers.map((number) => ({ number: BigInt(number) })) });
  const shown = (window: TrialWindow) => window.trials?.map(({ number }) => Number(number));

  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("is read once for the revision that is known, and again for a newer one, no more than once a second", async () => {
    listTrials.mockResolvedValueOnce(answer(2, 1)).mockResolvedValueOnce(answer(1, 2));
    const window = new TrialWindow();
    window.changed(7n);
    window.show(wanted);
    await vi.advanceTimersByTimeAsync(5000);
    expect([shown(window), listTrials.mock.calls.length]).toEqual([[2, 1], 1]);
    expect(listTrials.mock.calls[0]?.[0]).toMatchObject({ experiment: { key: { value: 3n } }, pageSize: 50, orderBy: "best_validation", maxHparams: 12 });
    window.changed(8n);
    await vi.advanceTimersByTimeAsync(10);
    for (const revision of [9n, 10n, 11n]) window.changed(revision);
    expect([shown(window), listTrials.mock.calls.length]).toEqual([[1, 2], 2]);
    listTrials.mockResolvedValueOnce(answer(3));
    await vi.advanceTimersByTimeAsync(5000);
    expect([shown(window), listTrials.mock.calls.length]).toEqual([[3], 3]);
  });

  it("keeps what it shows until other trials have come, and takes no late answer", async () => {
    listTrials.mockResolvedValueOnce(answer(1));
    const window = new TrialWindow();
    const end = window.show(wanted);
    await vi.advanceTimersByTimeAsync(0);
    let late: (answer: unknown) => void = () => undefined;
    listTrials.mockReturnValueOnce(new Promise((resolve) => (late = resolve)));
    window.changed(5n);
    await vi.advanceTimersByTimeAsync(1000);
    listTrials.mockResolvedValueOnce(answer(9));
    end();
    window.show({ ...wanted, skip: 50 });
    expect(shown(window)).toEqual([1]);
    await vi.advanceTimersByTimeAsync(0);
    late(answer(4));
    await vi.advanceTimersByTimeAsync(0);
    expect([shown(window), listTrials.mock.calls.length]).toEqual([[9], 3]);
  });

  it("has trials in the order of a metric, which another service keeps", async () => {
    const by = metricOrder("max:validation%2Faccuracy desc");
    const summaries = (...ids: string[]) => create(ListSummariesResponseSchema, { summaries: ids.map((trialId) => ({ trialId })) });
    listSummaries.mockResolvedValueOnce({ ...summaries("c", "a"), nextPageToken: "more" }).mockResolvedValueOnce(summaries("b"));
    const trials = [1, 2].map((number) => ({ number: BigInt(number), trialId: number === 1 ? "a" : "b" }));
    listTrials.mockResolvedValueOnce(create(ListTrialsResponseSchema, { trials: [...trials].reverse() }));
    const window = new TrialWindow();
    window.show({ ...wanted, count: 2, skip: 1, ranked: by && { experimentId: "e", by } });
    await vi.advanceTimersByTimeAsync(0);
    expect(shown(window)).toEqual([1, 2]);
    const metric = { experimentId: "e", groups: ["validation"], names: ["accuracy"], orderBy: "max desc" };
    expect(listSummaries.mock.calls.map(([request]) => request)).toEqual([
      { ...metric, pageSize: 3, pageToken: "" },
      { ...metric, pageSize: 1, pageToken: "more" },
    ]);
    expect(listTrials.mock.calls[0]?.[0]).toMatchObject({ trialIds: ["a", "b"], skip: 0, pageSize: 2 });
  });

  it("asks nothing any more once its view is closed", async () => {
    listTrials.mockResolvedValue(answer(1));
    const window = new TrialWindow();
    const end = window.show(wanted);
    await vi.advanceTimersByTimeAsync(0);
    window.changed(2n);
    end();
    window.changed(3n);
    await vi.advanceTimersByTimeAsync(5000);
    expect(listTrials).toHaveBeenCalledTimes(1);
  });
});
