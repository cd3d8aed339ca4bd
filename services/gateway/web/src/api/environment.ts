// What was recorded of a run's software and machine.

import type { RunEnvironment } from "$gen/resolute/api/experiments/v1/run_environment_pb.js";
import type { Trial } from "$gen/resolute/api/experiments/v1/trial_pb.js";
import { services, within } from "./services";

/** Reads the environment of a trial's latest run; nothing where no run has started. */
export async function readEnvironment({ number, run }: Trial, signal: AbortSignal): Promise<RunEnvironment | undefined> {
  if (!run) return undefined;
  const trial = { key: { case: "number", value: number } } as const;
  return (await services.trials.getRunEnvironment({ trial }, within(signal))).environment;
}
