import { expect, test } from "vitest";
import { boardsOf, placeOf, wholeAddress, written } from "$src/boards/board";
import { chartOf } from "$src/boards/chart.svelte";

test("boards are read by their names, and none leads to another server", () => {
  const text = (name: string, path: string) => written({ name, path }) ?? "";
  const settings = [
    ["board.1", text("losses", "compare?trials=1,2")],
    ["board.2", text("Accuracy", "//elsewhere.example/x")],
    ["board.3", "{"],
    ["board.4", '{"name": 1}'],
  ] as const;
  expect(boardsOf(settings)).toEqual([
    { setting: "board.2", name: "Accuracy", path: "elsewhere.example/x" },
    { setting: "board.1", name: "losses", path: "compare?trials=1,2" },
  ]);
  expect(written({ name: "n", path: "x".repeat(4000) })).toBeUndefined();
  expect(["trials/12?tab=logs", "compare?x=1", ""].map(placeOf)).toEqual(["trials 12", "compare", "experiments"]);
});

test("what this person has set for charts is in the address, unless it says otherwise", () => {
  const own = (name: string) => ({ charts: "training%2Floss", chart_size: "large" })[name] ?? "";
  expect(wholeAddress("compare", "?trials=1", own)).toBe("compare?trials=1&charts=training%252Floss&size=large");
  expect(wholeAddress("trials/1", "?charts=none&size=small", own)).toBe("trials/1?charts=none&size=small");
  expect(wholeAddress("experiments/1", "", own)).toBe("experiments/1");
});

test("the address of a view of trials or experiments is a chart, wherever it was copied", () => {
  const root = "http://here.example/below/";
  const numbers = (href: string) => {
    const chart = chartOf(href, root);
    return chart && [chart.trials.map(Number), chart.experiments.map(Number), chart.path];
  };
  expect(numbers("compare?trials=1,2&metric=training/loss")).toEqual([[1, 2], [], "compare?trials=1,2&metric=training/loss"]);
  expect(numbers("http://here.example/below/experiments/7?top=3")).toEqual([[], [7], "experiments/7?top=3"]);
  expect(numbers("trials/12")).toEqual([[12], [], "trials/12"]);
  for (const other of ["compare", "models?model=1", "http://elsewhere.example/below/trials/1", "//elsewhere.example/trials/1", "javascript:alert(1)", "http://", "../trials/1"]) {
    expect(chartOf(other, root), other).toBeUndefined();
  }
});
