import { describe, expect, it } from "vitest";
import { packFiles } from "$client/archives.js";
import { textOf, unpack } from "$src/api/archive";
import { codeDiff } from "$src/compare/code";
import { hunks } from "$src/ui/lineDiff";
import { sideBySide } from "$src/compare/differences";
import { numbersOf } from "$src/compare/numbers";
import { marksOf, placesOf } from "$src/plots/marks";

describe("what is compared", () => {
  it("is named once by the URL", () => {
    expect(numbersOf("3,1,3,x,-2,0")).toEqual([3n, 1n]);
  });

  it("differs where a value does, or is missing", () => {
    const { rows } = sideBySide("Config", [[["a", "1"], ["b", "2"]], [["a", "1"], ["c", "3"]]]);
    expect(rows.map(({ name, values, differs }) => [name, values, differs])).toEqual([
      ["a", ["1", "1"], false],
      ["b", ["2", undefined], true],
      ["c", [undefined, "3"], true],
    ]);
  });

  it("gives each trial a mark of its own, which it keeps", () => {
    const places = placesOf([2n, 12n, 22n, 3n]);
    const marks = marksOf(places, "light");
    expect(new Set([...marks.values()].map(({ color, dash }) => `${color} ${dash.join()}`)).size).toBe(4);
    expect(placesOf([12n, 5n], places).get(12n)).toBe(places.get(12n));
    const many = marksOf(placesOf(Array.from({ length: 40 }, (_, at) => BigInt(at))), "dark");
    expect(new Set([...many.values()].map(({ color, dash }) => `${color} ${dash.join()}`)).size).toBe(40);
  });
});

describe("model definitions", () => {
  const bytes = (text: string) => new TextEncoder().encode(text);

  it("are unpacked", async () => {
    const archive = await packFiles([
      { path: "model/net.py", data: bytes("import torch\n") },
      { path: "weights.bin", data: new Uint8Array([1, 0, 2]) },
      { path: "empty.txt", data: new Uint8Array() },
    ]);
    const files = await unpack(archive);
    expect([...files].map(([path, content]) => [path, textOf(content)])).toEqual([
      ["model/net.py", "import torch\n"],
      ["weights.bin", undefined],
      ["empty.txt", ""],
    ]);
    expect((await unpack(new Uint8Array())).size).toBe(0);
  });

  it("are compared file by file and line by line", () => {
    const lines = Array.from({ length: 20 }, (_, at) => `line ${at}\n`);
    const changed = [...lines.slice(0, 10), "new\n", ...lines.slice(11)].join("");
    const files = (texts: Record<string, string>) => new Map(Object.entries(texts).map(([path, text]) => [path, bytes(text)]));
    const before = files({ "a.py": lines.join(""), "same.py": "x", "gone.py": "y\n", data: "\0a", "same.bin": "\0" });
    const after = files({ "a.py": changed, "same.py": "x", data: "\0b", "same.bin": "\0" });
    const diff = codeDiff(before, after);
    expect(diff.map(({ path, change }) => [path, change])).toEqual([["a.py", "changed"], ["data", "changed"], ["gone.py", "removed"]]);
    const [first] = hunks(diff[0]?.lines ?? []);
    expect(first?.at).toBe(7);
    expect(first?.lines.filter(({ kind }) => kind !== "same")).toEqual([
      { kind: "removed", text: "line 10" },
      { kind: "added", text: "new" },
    ]);
    expect(diff[1]?.lines).toBeUndefined();
  });
});
