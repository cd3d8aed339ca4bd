import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { FileSchema } from "$gen/resolute/api/checkpoints/v1/checkpoint_pb.js";
import { summary, verified, type Checked } from "$src/checkpoints/verify";

const STORED: Readonly<Record<string, string>> = { sound: "weights", short: "wei", other: "Weights", unknown: "weights" };
const digest = "sha256:9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c"; // of "weights", by sha256sum
// The digest of "abc", as the authors of BLAKE3 publish it.
const ABC = "blake3:6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";
const file = (path: string, of = digest) => create(FileSchema, { path, size: 7n, digest: of });

async function* stored(path: string): AsyncGenerator<Uint8Array> {
  const text = STORED[path];
  if (text === undefined) throw new ConnectError("it is gone", Code.NotFound);
  const bytes = new TextEncoder().encode(text);
  yield bytes.slice(0, 2);
  yield bytes.slice(2);
}

async function all(found: AsyncGenerator<Checked>): Promise<Checked[]> {
  const checked: Checked[] = [];
  for await (const one of found) checked.push(one);
  return checked;
}

describe("a checkpoint that is verified", () => {
  it("has faults where its bytes are not what was committed", async () => {
    const read: number[] = [];
    const files = [file("sound"), file("short"), file("other"), file("gone"), file("unknown", "crc9:00")];
    const checked = await all(verified(files, stored, new AbortController().signal, (bytes) => read.push(bytes)));
    expect(checked).toEqual([
      { path: "sound", fault: "", compared: true },
      { path: "short", fault: "has 3 bytes instead of 7", compared: true },
      { path: "other", fault: "has another content than was committed", compared: true },
      { path: "gone", fault: "cannot be read: it is gone", compared: true },
      { path: "unknown", fault: "", compared: false },
    ]);
    expect(read.at(-1)).toBe(24);
    expect(summary(checked)).toBe("3 of 5 files damaged, 1 of them compared by size only");
    expect(summary(checked.slice(0, 1))).toBe("1 file sound");
  });

  it("is compared by BLAKE3 as well", async () => {
    const abc = create(FileSchema, { path: "abc", size: 3n, digest: ABC });
    const read = async function* () {
      yield new TextEncoder().encode("abc");
    };
    expect(await all(verified([abc], read, new AbortController().signal))).toMatchObject([{ fault: "", compared: true }]);
  });

  it("is left when the view ends", async () => {
    const ending = new AbortController();
    ending.abort();
    await expect(all(verified([file("gone")], stored, ending.signal))).rejects.toThrow();
  });
});
