import type { Experiment } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import { parseMetric, type Metric } from "$src/plots/metric";

/** The metric that a view shows: the one in the URL, or the one that the search decides by. */
export function chosenMetric(experiment: Experiment, inUrl: string): Metric {
  return parseMetric(inUrl) ?? { group: "validation", name: experiment.searcherMetric || "loss" };
}
