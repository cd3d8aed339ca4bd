import type { RunEnvironment } from "$gen/resolute/api/experiments/v1/run_environment_pb.js";

type Facts = readonly (readonly [name: string, text: string])[];

/** The machine and the interpreter of a run, in words; what is not known is left out. */
export function machineFacts({ hostName, platform, pythonVersion, gpus, gpuDriver, cudaVersion }: RunEnvironment): Facts {
  const facts: Facts = [
    ["host", hostName],
    ["platform", platform],
    ["Python", pythonVersion],
    ["GPUs", gpus.join(", ")],
    ["GPU driver", gpuDriver],
    ["CUDA", cudaVersion],
  ];
  return facts.filter(([, text]) => text);
}

/** The installed distributions of a run, with their versions. */
export const packageFacts = ({ packages }: RunEnvironment): Facts => packages.map(({ name, version }) => [name, version] as const);
