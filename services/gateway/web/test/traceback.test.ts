import { describe, expect, it, test } from "vitest";
import { beyond, frameCount, readTraceback } from "$src/trial/traceback";

const CHAIN = `Traceback (most recent call last):
  File "/run/code/data.py", line 3, in read
    raise KeyError("x")
KeyError: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/usr/lib/python3.11/runpy.py", line 196, in _run
    exec(code)
  File "/run/code/train.py", line 9, in <module>
    fit(model)
    ~~~^^^^^^^
  File "/venv/lib/python3.11/site-packages/torch/nn/a.py", line 1, in call
    return inner()
  File "/venv/lib/python3.11/site-packages/torch/nn/b.py", line 2, in inner
    raise ValueError
ValueError: shapes differ
  hint: transpose
`;

test("an explanation beside its failure does not repeat it", () => {
  expect(beyond("failed: ValueError: a; b", "Traceback …\nValueError: a; b\n")).toBe("");
  expect(beyond("failed: ValueError: a; b; it is not repeated", "ValueError: a; b")).toBe("it is not repeated");
  expect(beyond('failed: hint; not repeated: "ValueError: a" comes again', "ValueError: a\nhint")).toBe("not repeated: such a failure comes again");
  expect(beyond("failed: a very long l", "a very long line")).toBe("");
  expect(beyond("waits for 2 slots", "ValueError: a")).toBe("waits for 2 slots");
  expect(beyond("lost: its node is away", "ValueError: a")).toBe("lost: its node is away");
});

describe("a traceback", () => {
  it("is read from its last exception, with runs of library frames together, innermost first", () => {
    const read = readTraceback(CHAIN);
    expect(read?.exception).toBe("ValueError: shapes differ\n  hint: transpose");
    expect(read?.frames.map((part) => [part.isLibrary, frameCount(part)])).toEqual([[true, 2], [false, 1], [true, 1]]);
    expect(read?.frames[1]?.text).toContain("fit(model)");
  });

  it("is none where a text has none, or is cut off", () => {
    expect(readTraceback("killed by signal 9")).toBeUndefined();
    expect(readTraceback("Traceback (most recent call last):\n  File \"a.py\", line 1, in f")).toBeUndefined();
  });
});
