import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { MediaKind, MediaSchema } from "$gen/resolute/api/checkpoints/v1/media_pb.js";
import { ListMediaNamesResponseSchema } from "$gen/resolute/api/checkpoints/v1/media_service_pb.js";
import { cellsOf, readHistogram, spanOf, total } from "$src/media/histogram";
import { entriesOf, placeOf, shownAt, stepsOf, thinned } from "$src/media/steps";
import { filtered, joined, readTable, sorted } from "$src/media/table";

const logged = (stepsCompleted: bigint, mediaId: bigint, run = 1) => create(MediaSchema, { stepsCompleted, mediaId, run });

describe("media at a step", () => {
  const first = [logged(1n, 1n), logged(1n, 2n), logged(5n, 3n), logged(5n, 4n, 2), logged(9n, 5n)];

  it("are those of the last step up to there, of the latest run", () => {
    const ids = (step: bigint) => shownAt(first, step).map(({ mediaId }) => mediaId);
    expect([ids(0n), ids(1n), ids(4n), ids(5n), ids(100n)]).toEqual([[], [1n, 2n], [1n, 2n], [4n], [5n]]);
  });

  it("have one slider over the steps of all trials", () => {
    const steps = stepsOf([first, [logged(3n, 6n)]]);
    expect(steps).toEqual([1n, 3n, 5n, 9n]);
    expect(["", "0", "3", "4", "1000", "x", "9".repeat(40)].map((at) => placeOf(steps, at))).toEqual([3, 0, 1, 1, 3, 3, 3]);
  });

  it("are thinned with the first and the last", () => {
    expect(thinned([1, 2, 3, 4, 5, 6, 7], 3)).toEqual([1, 4, 7]);
    expect(thinned([1, 2], 3)).toEqual([1, 2]);
  });
});

it("names of several trials are one entry for each kind", () => {
  const name = (trialId: string, text: string, kind: MediaKind) => ({ trialId, name: text, kind });
  const names = [name("a", "x", MediaKind.TEXT), name("b", "x", MediaKind.TEXT), name("b", "x", MediaKind.IMAGE)];
  expect(entriesOf(create(ListMediaNamesResponseSchema, { names }))).toEqual([
    { name: "x", kind: MediaKind.IMAGE, trialIds: ["b"] },
    { name: "x", kind: MediaKind.TEXT, trialIds: ["a", "b"] },
  ]);
});

describe("histograms", () => {
  it("become cells by value and step, as dense as they are", () => {
    const one = readHistogram('{"counts": [4, 0, 2], "edges": [0, 1, 2, 4], "left_out": 3}');
    if (!one) throw new Error("it is one");
    expect([total(one), one.leftOut, spanOf([one])]).toEqual([6, 3, [0, 4]]);
    expect(cellsOf([one, one], [0, 4])).toEqual([
      { x: 0, width: 0.5, y: 0, height: 0.25, share: 1 },
      { x: 0, width: 0.5, y: 0.5, height: 0.5, share: 0.25 },
      { x: 0.5, width: 0.5, y: 0, height: 0.25, share: 1 },
      { x: 0.5, width: 0.5, y: 0.5, height: 0.5, share: 0.25 },
    ]);
  });

  it("of one value have room around it", () => {
    expect(spanOf([{ counts: [1], edges: [2, 2], leftOut: 0 }])).toEqual([1.5, 2.5]);
  });

  it("that are none are none", () => {
    for (const text of ["", "[]", "null", "{}", '{"counts": [1], "edges": [1]}', '{"counts": ["<b>"], "edges": [1, 2]}'])
      expect(readHistogram(text)).toBeUndefined();
  });
});

describe("tables", () => {
  const rows = [[3, "b"], [null, "A"], [10, null], ["text", "c"]] as const;

  it("are sorted with numbers first and what is empty last", () => {
    const column = (down: boolean) => sorted(rows, 0, down).map(([cell]) => cell);
    expect(column(false)).toEqual([3, 10, "text", null]);
    expect(column(true)).toEqual(["text", 10, 3, null]);
  });

  it("are filtered in any case", () => {
    expect(filtered(rows, "a").map(([, cell]) => cell)).toEqual(["A"]);
    expect(filtered(rows, "")).toBe(rows);
  });

  it("of several trials are joined by the names of their columns", () => {
    const one = { columns: ["a", "b"], rows: [[1, 2]] };
    const other = { columns: ["b", "c"], rows: [[3, 4]] };
    expect(joined([[7n, one]])).toBe(one);
    expect(joined([[7n, one], [8n, other]])).toEqual({
      columns: ["trial", "a", "b", "c"],
      rows: [[7, 1, 2, null], [8, null, 3, 4]],
    });
  });

  it("that are none are none", () => {
    expect(readTable('{"columns": ["a"], "rows": [[1]]}')).toEqual({ columns: ["a"], rows: [[1]] });
    for (const text of ["<svg>", "[]", '{"columns": [1], "rows": []}', '{"columns": ["a"], "rows": [[1, 2]]}', '{"columns": ["a"], "rows": [[{}]]}'])
      expect(readTable(text)).toBeUndefined();
  });
});
