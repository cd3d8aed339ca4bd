import { expect, test } from "vitest";
import { visible } from "$src/ui/visible";

test("characters that change the direction of a name are shown", () => {
  expect(visible("best\u202egpj.exe")).toBe("best\\u202egpj.exe");
  expect(visible("\u2066a\u2069 \u061c\u200f\u0007")).toBe("\\u2066a\\u2069 \\u061c\\u200f\\u0007");
});

test("names of every script stay as they are", () => {
  for (const name of ["mnist", "größte Näherung", "学習", "تجربة", "עברית", "👩‍🔬 run"]) expect(visible(name)).toBe(name);
});
