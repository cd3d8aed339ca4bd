import { parseTarGzip } from "nanotar";
import { expect, test } from "vitest";
import { packed } from "$src/create/code";
import { inProject } from "$src/create/config";

const file = (webkitRelativePath: string, text: string) =>
  Object.assign(new File([text], webkitRelativePath.split("/").at(-1) ?? ""), { webkitRelativePath, arrayBuffer: () => new Blob([text]).arrayBuffer() });
const place = { workspace: "vision", project: "first" };

test("a folder is packed without caches, and its config is found", async () => {
  const { archive, config, says } = await packed([
    file("code/train.py", "é"),
    file("code/config.yaml", "name: x"),
    file("code/.git/HEAD", "ref"),
    file("code/nets/__pycache__/a.pyc", "b"),
    file("code/nets/empty.py", ""),
  ]);
  const entries = await parseTarGzip(archive);
  expect(entries.map(({ name }) => name)).toEqual(["config.yaml", "nets/empty.py", "train.py"]);
  expect(new TextDecoder().decode(entries[2]?.data)).toBe("é");
  expect(config).toBe("name: x");
  expect(says).toMatch(/^3 files, .* packed; 2 left out/);
});

test("equal files make equal archives, in whatever order they were chosen", async () => {
  const [a, b] = [file("c/a.py", "1"), file("c/b.py", "2")];
  expect((await packed([a, b])).archive).toEqual((await packed([b, a])).archive);
});

test("a rule file that is not heeded is named, and nothing to pack is an error", async () => {
  expect((await packed([file("c/.detignore", "data"), file("c/a.py", "1")])).warning).toContain(".detignore");
  await expect(packed([file("c/.git/HEAD", "ref")])).rejects.toThrow("no files");
  await expect(packed([file(`c/${"é".repeat(51)}`, "")])).rejects.toThrow("longer than 100 bytes");
});

test("a config belongs to the chosen project unless it names one", () => {
  expect(inProject("name: x # why\n", place)).toBe("name: x # why\nworkspace: vision\nproject: first\n");
  expect(inProject("{name: x}", place)).toContain("vision");
  for (const text of ["project: mine\n", "workspace: w\n", "a: [", "", "- 1\n"]) expect(inProject(text, place)).toBe(text);
});
