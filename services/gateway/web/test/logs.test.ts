import { describe, expect, it, vi } from "vitest";
import { Level } from "$gen/resolute/api/logs/v1/line_pb.js";
import { afterReturns, spans } from "$src/logs/ansi";
import { lineFilter, localTime, moment } from "$src/logs/filter";

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

  it("leave exact colours out, and what follows them in", () => {
    expect(spans("\u001b[38;5;196;1mx\u001b[39my")).toEqual([
      { text: "x", look: "bold" },
      { text: "y", look: "bold" },
    ]);
  });

  it("keep markup as text", () => {
    expect(spans("<img src=x onerror=alert(1)>")).toEqual([{ text: "<img src=x onerror=alert(1)>", look: "" }]);
  });
});

describe("the filter of a log", () => {
  const filter = (url: Record<string, string>) => lineFilter("t", (name) => url[name] ?? "");

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
    expect(lineFilter("t", (name) => url[name] ?? "")).toMatchObject({ startTime: { seconds: 1769860800n, nanos: 0 } });
    expect(lineFilter("t", (name) => url[name] ?? "")).not.toHaveProperty("endTime");
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
