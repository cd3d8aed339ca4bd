// Reads what of a config somebody gave.

import type { Value } from "$gen/resolute/api/common/v1/value_pb.js";
import { services, within } from "$src/api/services";
import { yamlOf } from "$src/steer/yaml";
import { givenOf, leastOf } from "./given";

/** Asks what the cluster fills into a config that says as little as this one may, and returns the rest as YAML. */
export async function readGiven(config: Value, signal: AbortSignal): Promise<string> {
  const { config: filled } = await services.experiments.validateConfig({ configYaml: yamlOf(leastOf(config)) }, within(signal));
  return filled ? yamlOf(givenOf(config, filled)) : "";
}
