import { describe, expect, it, vi } from "vitest";
import { Level } from "$gen/resolute/api/logs/v1/line_pb.js";
import { afterReturns, plain, spans } from "$src/logs/ansi";
import { lineFilter, localTime, moment, placeOf } from "$src/logs/filter";
import { ROW, rowsOf, single, wrapped } from "$src/logs/layout";

describe("lines", () => {
  it("show the last state of a progress bar", () => {
    expect(afterReturns(" 10%\r 50%\r100%")).toBe("100%");
    expect(afterReturns(" 10%\r100%\r")).toBe("100%");
  });

  it("have the colours of their escape sequences, which are not shown", () => {
    expect(spans("\u001b[1;31mfailed\u001b[0m twice\u001b[K")).toEqual([
      { text: "failed", look: "bold red" },
      { text: " twice", look: "" },
    ]);
  });

  it("have exact colours, of the palette and of any other, in each way to write them", () => {
    const red = [{ text: "x", look: "bold", color: "rgb(255 0 0)" }, { text: "y", look: "bold" }];
    for (const code of ["38;5;196", "38;2;255;0;0", "38:5:196", "38:2::255:0:0", "38:2:255:0:0"]) {
      expect(spans(`\u001b[1;${code}mx\u001b[39my`)).toEqual(red);
    }
    expect(spans("\u001b[38;5;1mx\u001b[38;5;244my")).toEqual([{ text: "x", look: "red" }, { text: "y", look: "", color: "rgb(128 128 128)" }]);
  });

  it("leave out colours that are none, and those of the ground, and what follows them in", () => {
    expect(spans("\u001b[48;5;196;1mx\u001b[22my")).toEqual([{ text: "x", look: "bold" }, { text: "y", look: "" }]);
    expect(spans("\u001b[38;2;999;0;0mx")).toEqual([{ text: "x", look: "" }]);
    expect(spans("\u001b[38;5;300mx\u001b[38mz")).toEqual([{ text: "x", look: "" }, { text: "z", look: "" }]);
  });

  it("show characters that turn text around, and keep tabs", () => {
    expect(plain("a\tb\u202egpj.exe")).toBe("a\tb\\u202egpj.exe");
  });

  it("keep markup as text", () => {
    expect(spans("<img src=x onerror=alert(1)>")).toEqual([{ text: "<img src=x onerror=alert(1)>", look: "" }]);
  });
});

describe("the filter of a log", () => {
  const filter = (url: Record<string, string>) => lineFilter({ trialId: "t" }, (name) => url[name] ?? "");

  it("is what the URL says", () => {
    expect(filter({ rank: "0,3", level: "warning", text: "a.*b", regex: "1" })).toEqual({
      trialId: "t",
      ranks: [0, 3],
      minLevel: Level.WARNING,
      regex: "a.*b",
    });
  });

  it("ignores what is wrong in a URL", () => {
    expect(filter({ rank: "x,-1", level: "loud" })).toEqual({ trialId: "t", ranks: [], minLevel: Level.UNSPECIFIED, text: "" });
  });
});

describe("the filter of a log", () => {
  it("has bounds of time as the URL has them", () => {
    const url: Record<string, string> = { from: "2026-01-31T12:00:00Z", until: "soon" };
    expect(lineFilter({ trialId: "t" }, (name) => url[name] ?? "")).toMatchObject({ startTime: { seconds: 1769860800n, nanos: 0 } });
    expect(lineFilter({ trialId: "t" }, (name) => url[name] ?? "")).not.toHaveProperty("endTime");
  });

  it("means the same moment in every time zone", () => {
    vi.stubEnv("TZ", "Asia/Kolkata");
    const inUrl = moment("2026-01-31T12:00");
    expect(inUrl).toBe("2026-01-31T06:30:00.000Z");
    expect(localTime(inUrl)).toBe("2026-01-31T12:00:00");
    vi.stubEnv("TZ", "America/New_York");
    expect(localTime(inUrl)).toBe("2026-01-31T01:30:00");
    vi.unstubAllEnvs();
    expect([moment(""), localTime(""), localTime("soon")]).toEqual(["", "", ""]);
  });
});

describe("a place of a log", () => {
  const day = new Date(2026, 0, 31, 9).getTime();

  it("is a line, a time of the day, or a moment", () => {
    expect(placeOf(" 812 ", day)).toEqual({ line: 812n });
    expect(placeOf("14:03", day)).toEqual({ time: new Date(2026, 0, 31, 14, 3).getTime() });
    expect(placeOf("2026-02-01 14:03:20", day)).toEqual({ time: new Date(2026, 1, 1, 14, 3, 20).getTime() });
    expect(placeOf("soon", day)).toBeUndefined();
  });
});

describe("lines below each other", () => {
  it("take a row each, or as many as their text needs", () => {
    expect([single(3).height, single(3).top(2), single(3).at(2 * ROW + 1)]).toEqual([3 * ROW, 2 * ROW, 2]);
    const layout = wrapped(["", "x".repeat(20), "x".repeat(21), "\t\t"], 10);
    expect([0, 1, 2, 3, 4].map((index) => layout.top(index) / ROW)).toEqual([0, 1, 3, 6, 8]);
    expect([0, 1, 2, 3, 5, 6, 7, 99].map((row) => layout.at(row * ROW))).toEqual([0, 1, 1, 2, 2, 3, 3, 3]);
    expect(layout.height).toBe(8 * ROW);
  });

  it("have room for letters that are two columns wide", () => {
    expect(rowsOf("\u5b66\u7fd2\u7387\u5b66\u7fd2\u7387", 10)).toBe(2);
  });
});
