// Where the event files of experiments and trials are.

import type { Value } from "$gen/resolute/api/common/v1/value_pb.js";
import type { Experiment } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import { services } from "$src/api/services";
import { cluster } from "$src/cluster/services";
import { eventsOfExperiment, eventsOfTrial, type Named, type Place, placeOf, type Source } from "./specs";

/** Event files of what is named, and the project of the first experiment among them. */
export async function findSources({ experiments, trials }: Named): Promise<{ sources: readonly Source[]; place: Place }> {
  const { clusterId } = await cluster.getCluster({});
  const found: { readonly experiment: Experiment; readonly name: string; readonly path: string }[] = [];
  for (const number of experiments) {
    found.push({ experiment: await read(number), name: `experiment ${number}`, path: eventsOfExperiment(clusterId, number) });
  }
  for (const number of trials) {
    const { trial } = await services.trials.getTrial({ trial: { key: { case: "number", value: number } } });
    const experiment = await read(trial?.experimentNumber ?? 0n);
    found.push({ experiment, name: `trial ${number}`, path: eventsOfTrial(clusterId, experiment.number, number) });
  }
  const first = found[0]?.experiment;
  return {
    sources: found.map(({ experiment, name, path }) => ({ name, path, storage: plain(fieldOf(experiment.config, "checkpoint_storage")) })),
    place: placeOf({ workspaceName: first?.workspaceName ?? "", name: first?.projectName ?? "" }),
  };
}

async function read(number: bigint): Promise<Experiment> {
  const { experiment } = await services.experiments.getExperiment({ experiment: { key: { case: "number", value: number } } });
  if (!experiment) throw new Error(`There is no experiment ${number}.`);
  return experiment;
}

const fieldOf = (map: Value | undefined, name: string): Value | undefined =>
  map?.kind.case === "mapValue" ? map.kind.value.fields[name] : undefined;

/** A value as JSON has it. */
function plain(value: Value | undefined): unknown {
  const kind = value?.kind;
  switch (kind?.case) {
    case "intValue":
      return Number(kind.value);
    case "listValue":
      return kind.value.values.map(plain);
    case "mapValue":
      return Object.fromEntries(Object.entries(kind.value.fields).map(([name, one]) => [name, plain(one)]));
    case "boolValue":
    case "doubleValue":
    case "stringValue":
      return kind.value;
    default:
      return null;
  }
}
