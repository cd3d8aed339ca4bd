import { describe, expect, it } from "vitest";
import { together } from "$src/curves/groups";
import { lineOf, type Curve, type Line } from "$src/curves/series";
import { choicesOf, coloringOf, differing, LABELS, traitsOf, type Traits } from "$src/curves/traits";
import { linesOf, type TrialCurve } from "$src/curves/view";
import { curvesCsv, linesCsv } from "$src/exports/csv";
import type { Picture } from "$src/exports/picture";
import { svgOf } from "$src/exports/render";
import { hidden, joined, movedBy, nameOf, pinned, readArrangement, sectionsOf, writtenArrangement, type Arrangement } from "$src/grid/arrangement";
import { rampColor } from "$src/plots/marks";
import { readPlotOptions } from "$src/plots/options";

const mark = { color: "red", dash: [] };
const line = (x: number[], y: (number | null)[], label = "a"): Line => ({ ...mark, label, x, y });
const curve = (label: string, values: number[]): Curve => ({
  ...mark,
  label,
  points: { steps: values.map((_, at) => at), values, times: values.map((_, at) => at) },
});

describe("lines along a metric", () => {
  it("are ordered by it, and leave out points without it", () => {
    const across = { steps: [0, 2], values: [0.4, 0.2], times: [0, 0] };
    const placed = { ...curve("a", [1, 2, 3, 4]), across };
    const { x, y } = lineOf(placed, { axis: "metric", smoothing: 0, log: false });
    expect(x.map((one) => Number(one.toFixed(9)))).toEqual([0.2, 0.3, 0.4]);
    expect(y).toEqual([3, 2, 1]);
  });
});

describe("lines together", () => {
  const options = { label: "both", mark, log: false };
  const lines = [line([0, 10, 20], [1, 3, 5]), line([0, 5, 10], [3, null, 5])];

  it("have their mean where each is, straight between points", () => {
    const mean = together(lines, { ...options, band: "none" });
    expect(mean.x).toEqual([0, 5, 10, 20]);
    expect(mean.y).toEqual([2, 3, 4, 5]);
    expect(mean.band).toBeUndefined();
  });

  it("have a band of the standard deviation, or from the least to the most", () => {
    const deviation = together(lines, { ...options, band: "std" }).band;
    expect(deviation?.low.map((one) => Number(one?.toFixed(4)))).toEqual([0.5858, 1.5858, 2.5858, 5]);
    expect(together(lines, { ...options, band: "range" }).band).toEqual({ low: [1, 2, 3, 5], high: [3, 4, 5, 5] });
  });

  it("have no band below zero on a logarithmic axis", () => {
    const wide = [line([0], [0.1]), line([0], [10])];
    const { y, band } = together(wide, { ...options, band: "std", log: true });
    expect(band?.low).toEqual(y);
  });

  it("are put together at some places where they have very many points", () => {
    const x = Array.from({ length: 3000 }, (_, at) => at);
    expect(together([line(x, x)], { ...options, band: "none" }).x).toHaveLength(500);
  });
});

describe("traits", () => {
  const look = { theme: "light", scale: undefined } as const;
  const traits = (values: Record<string, number | string>): Traits => new Map(Object.entries(values));

  it("are hyperparameters, the experiment and its labels", () => {
    const hparams = { kind: { case: "mapValue", value: { fields: { lr: { kind: { case: "doubleValue", value: 0.1 } } } } } };
    const found = traitsOf({ hparams: hparams as never }, { number: 3n, name: "sweep", labels: ["q4", "a"] });
    expect([...found]).toEqual([["@experiment", "3 sweep"], [LABELS, "a, q4"], ["lr", 0.1]]);
    expect(differing([found, new Map(found).set("lr", 0.2)])).toEqual(["lr"]);
  });

  it("of few values are choices in their order, those that are missing last", () => {
    const choices = choicesOf("n", [traits({ n: 10 }), traits({ n: 2 }), traits({})], look);
    expect(choices.keys.map(({ label }) => label)).toEqual(["n 2", "n 10", "n none"]);
    expect(choices.of(2).mark).not.toEqual(choices.of(10).mark);
    expect(choicesOf("o", [traits({ o: "run10" }), traits({ o: "run2" })], look).keys.map(({ label }) => label)).toEqual(["o run2", "o run10"]);
  });

  it("of many numbers are stretches", () => {
    const many = Array.from({ length: 20 }, (_, at) => traits({ n: at }));
    const { keys, of } = choicesOf("n", many, look);
    expect(keys.map(({ label }) => label)).toEqual(["n 0 to 3", "n 4 to 7", "n 8 to 11", "n 12 to 15", "n 16 to 19"]);
    expect(of(19).label).toBe("n 16 to 19");
  });

  it("colour numbers along a ramp, and other values as choices", () => {
    const numbers = coloringOf("n", [traits({ n: 1 }), traits({ n: 3 })], look);
    expect([numbers.of(1).color, numbers.of(3).color, numbers.of(undefined).color]).toEqual([rampColor(0, "light"), rampColor(1, "light"), rampColor(undefined, "light")]);
    expect(numbers.ramp?.name).toBe("n");
    expect(coloringOf("o", [traits({ o: "a" }), traits({ o: "b" })], look).keys).toHaveLength(2);
  });
});

describe("lines of a view", () => {
  const of = (label: string, values: number[], more: Partial<TrialCurve> = {}): TrialCurve => ({ curve: curve(label, values), traits: new Map([["depth", values[0] ?? 0]]), metric: "m", isBaseline: false, ...more });
  const look = (query: string) => ({ options: readPlotOptions((name) => new URLSearchParams(query).get(name) ?? ""), theme: "light", scales: new Map() }) as const;
  const curves = [of("trial 1", [1, 2]), of("trial 2", [1, 4]), of("trial 3", [5, 6]), of("trial 9 (baseline)", [0, 0], { isBaseline: true })];

  it("are grouped, the baseline apart and last", () => {
    const { lines, legend } = linesOf(curves, look("group=depth"));
    expect(lines.map(({ label, y }) => [label, y])).toEqual([["depth 1", [1, 3]], ["depth 5", [5, 6]], ["trial 9 (baseline)", [0, 0]]]);
    expect(legend?.keys.map(({ label }) => label)).toEqual(["depth 1 (2)", "depth 5 (1)"]);
  });

  it("are coloured, or as they are", () => {
    expect(linesOf(curves, look("")).legend).toBeUndefined();
    const { lines, legend } = linesOf(curves, look("color=depth"));
    expect(lines.map(({ color }) => color)).toEqual([rampColor(0, "light"), rampColor(0, "light"), rampColor(1, "light"), "red"]);
    expect(legend?.ramp?.name).toBe("depth");
  });

  it("say of which metric they are, and which are baselines", () => {
    const several = [...curves, of("trial 9 · n (baseline)", [7], { metric: "n", isBaseline: true })];
    for (const query of ["", "group=depth"]) {
      const { lines } = linesOf(several, look(query));
      expect(lines.filter(({ isBaseline }) => isBaseline).map(({ metric, y }) => [metric, y])).toEqual([["m", [0, 0]], ["n", [7]]]);
      expect(lines.filter(({ isBaseline }) => !isBaseline).every(({ metric }) => metric === "m")).toBe(true);
    }
  });

  it("of several metrics have dashes of their own", () => {
    const { lines, legend } = linesOf([of("a", [1]), of("b", [2], { metric: "n" })], look(""));
    expect(lines.map(({ dash }) => dash.length > 0)).toEqual([false, true]);
    expect(legend?.keys.map(({ label }) => label)).toEqual(["m", "n"]);
  });
});

describe("the arrangement of charts", () => {
  const [loss, lr, accuracy, gpu, other] = ["training/loss", "training/lr", "validation/accuracy", "system/gpu.util", "mine/x"].map((label) => ({ group: label.split("/")[0] ?? "", name: label.split("/")[1] ?? "" })) as [Metric, Metric, Metric, Metric, Metric];
  type Metric = { group: string; name: string };
  const none: Arrangement = { pinned: [], hidden: new Set() };

  it("has the metric of the search first, then training, validation and others, and machines last", () => {
    const validationLoss = { group: "validation", name: "loss" };
    const sections = sectionsOf([gpu, other, validationLoss, accuracy, loss, lr], none, ["validation/accuracy"]);
    expect(sections.map(({ name }) => name)).toEqual(["Metric of the search", "training", "validation", "mine", "system / gpu"]);
  });

  it("has what is pinned first, in its own order, and leaves out what is hidden", () => {
    const arranged = hidden(pinned(pinned(none, [lr]), [loss]), [gpu]);
    const moved = movedBy(arranged, [loss], -1);
    const sections = sectionsOf([loss, lr, gpu, accuracy], moved, []);
    expect(sections.map(({ name, charts }) => [name, charts.map(nameOf)])).toEqual([["Pinned", ["training/loss", "training/lr"]], ["validation", ["validation/accuracy"]]]);
    expect(pinned(moved, [loss]).pinned.map(nameOf)).toEqual(["training/lr"]);
  });

  it("draws several metrics in one chart, and keeps their own", () => {
    const both = joined(joined(none, [loss], lr), [loss, lr], lr);
    expect(sectionsOf([loss, lr], both, []).map(({ charts }) => charts.map(nameOf))).toEqual([["training/loss, training/lr"], ["training/loss", "training/lr"]]);
    expect(hidden(both, [loss, lr])).toEqual(none);
  });

  it("comes back from the URL, and is no longer than a setting may be", () => {
    const [odd, minus] = [{ group: "a+b", name: "c,d-e" }, { group: "-a", name: "-b" }];
    const arrangement = { pinned: [[loss, odd], [accuracy], [minus, loss]], hidden: new Set(["-x/y,z"]) };
    expect(readArrangement(writtenArrangement(arrangement) ?? "")).toEqual(arrangement);
    expect(readArrangement("none,%E0%A4%A,-%E0%A4%A")).toEqual(none);
    const many = { ...none, hidden: new Set(Array.from({ length: 500 }, (_, at) => `training/metric ${at}`)) };
    expect(writtenArrangement(many)).toBeUndefined();
    expect(writtenArrangement({ ...none, hidden: new Set(["a".repeat(3999)]) })).toHaveLength(4000);
  });
});

describe("exports", () => {
  it("have each point as it was reported, and quote what programs would misread", () => {
    expect(curvesCsv([curve("=a,b", [1, NaN, Infinity])])).toBe(
      'series,step,time,value\r\n"\'=a,b",0,1970-01-01T00:00:00.000Z,1\r\n"\'=a,b",1,1970-01-01T00:00:01.000Z,NaN\r\n"\'=a,b",2,1970-01-01T00:00:02.000Z,Infinity\r\n',
    );
    expect(linesCsv([{ ...line([1], [-2]), band: { low: [-3], high: [null] } }], "Steps")).toBe("series,Steps,mean,low,high\r\na,1,-2,-3,\r\n");
  });

  it("are SVG documents in which no text is markup", () => {
    const picture: Picture = {
      width: 10,
      height: 10,
      plot: { left: 0, top: 0, width: 10, height: 10 },
      shapes: [
        { kind: "text", at: [1, 2], text: '<script>"&', anchor: "start" },
        { kind: "line", points: [[0, 0], [1, 1]], color: "red", width: 1, dash: [2, 3], cut: true },
      ],
      colors: { ground: "white", text: "black" },
    };
    const svg = svgOf(picture);
    expect(svg).toContain("&#60;script&#62;&#34;&#38;</text>");
    expect(svg).toContain('<polyline points="0.0,0.0 1.0,1.0" fill="none" stroke="red" stroke-width="1" stroke-dasharray="2 3" clip-path="url(#plot)"/>');
  });
});
