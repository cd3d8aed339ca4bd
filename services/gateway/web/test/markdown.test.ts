import { expect, test } from "vitest";
import { blocksOf, safeHref } from "$src/ui/markdown";

test("links lead to the web and to letters alone", () => {
  for (const href of ["https://a.example/x", "http://a.example", "mailto:a@b.example", "experiments/7", "#part"]) expect(safeHref(href)).toBe(href);
  for (const href of ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "java\nscript:alert(1)", " javascript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd"]) {
    expect(safeHref(href)).toBeUndefined();
  }
});

test("texts of any length come back", () => {
  expect(blocksOf("# a\n\n- b\n- c")?.map(({ type }) => type).filter((type) => type !== "space")).toEqual(["heading", "list"]);
  expect(blocksOf("x".repeat(300_000))).toBeUndefined();
  for (const deep of ["> ".repeat(20_000), "- ".repeat(5_000), `${"[".repeat(5_000)}x`, `${"*a ".repeat(5_000)}`, `${"<".repeat(20_000)}`]) {
    const began = Date.now();
    blocksOf(`${deep}x`);
    expect(Date.now() - began).toBeLessThan(5_000);
  }
  expect(blocksOf(`${"> ".repeat(200)}x`)).toBeUndefined();
});
