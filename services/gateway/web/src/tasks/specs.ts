// The specs by which commands and TensorBoards are submitted: those of experiments of one trial.

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ExperimentSpecSchema } from "$gen/resolute/api/experiments/v1/experiments_service_pb.js";
import type { Project } from "$gen/resolute/api/experiments/v1/project_pb.js";
import { ExperimentKind } from "$gen/resolute/api/experiments/v1/experiment_pb.js";

export type Spec = MessageInitShape<typeof ExperimentSpecSchema>;

/** Between the request to leave its slots, which few commands know, and the end of its processes. */
const GRACE_SECONDS = 30;
const SHOWN = 100;

/** Event files that TensorBoard shows: under which name, in which storage, and where there. */
export interface Source {
  readonly name: string;
  readonly storage: unknown;
  readonly path: string;
}

/** Where a task belongs, as configs have it. */
export interface Place {
  readonly workspace: string;
  readonly project: string;
}

export const placeOf = ({ workspaceName, name }: Pick<Project, "workspaceName" | "name">): Place => ({ workspace: workspaceName, project: name });

/** A command for the shell, on some slots. */
export function commandSpec({ command, slots, place }: { command: string; slots: number; place: Place }): Spec {
  const text = command.trim();
  const resources = { slots_per_trial: slots };
  const description = `Command (${text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text})`;
  return specOf(ExperimentKind.COMMAND, { ...place, ...named(description), entrypoint: text, resources });
}

/** TensorBoard for some event files; it holds no slot. */
export function tensorboardSpec({ sources, place }: { sources: readonly Source[]; place: Place }): Spec {
  const description = `TensorBoard (${sources.map(({ name }) => name).join(", ")})`;
  return specOf(ExperimentKind.TENSORBOARD, {
    ...place,
    ...named(description),
    entrypoint: "python3 -m determined.exec.tensorboard",
    data: { tensorboard: { sources } },
    resources: { slots_per_trial: 0 },
  });
}

/** Where the event files of an experiment are kept, below the storage of its checkpoints. */
export const eventsOfExperiment = (clusterId: string, experiment: bigint): string => `${clusterId}/tensorboard/experiment/${experiment}`;

/** The same of one trial. */
export const eventsOfTrial = (clusterId: string, experiment: bigint, trial: bigint): string =>
  `${eventsOfExperiment(clusterId, experiment)}/trial/${trial}`;

export interface Named {
  readonly experiments: readonly bigint[];
  readonly trials: readonly bigint[];
}

/** What "7, t12" names; undefined where it cannot be read. */
export function sourcesNamed(text: string): Named | undefined {
  const words = text.toLowerCase().split(/[\s,]+/).filter(Boolean);
  const found = words.map((word) => /^([et]?)([1-9]\d{0,17})$/.exec(word));
  if (!found.length || found.some((one) => !one)) return undefined;
  const numbers = (kind: (prefix: string) => boolean) => [...new Set(found.filter((one) => kind(one?.[1] ?? "")).map((one) => BigInt(one?.[2] ?? 0)))];
  return { experiments: numbers((prefix) => prefix !== "t"), trials: numbers((prefix) => prefix === "t") };
}

const named = (description: string) => ({ name: description, description, preemption_timeout: GRACE_SECONDS });

/** JSON is YAML too. */
function specOf(kind: ExperimentKind, config: object): Spec {
  const searcher = { name: "single", metric: "loss", max_length: { batches: 1 } };
  return { kind, configYaml: JSON.stringify({ ...config, searcher, max_restarts: 0 }) };
}
