// clients/scenario.md in TypeScript. Run it as `node dist/examples/scenario.js DIRECTORY DOWNLOADS`.

import { mkdir, readFile as readLocal, writeFile } from "node:fs/promises";
import path from "node:path";
import process from "node:process";
import {
  connect,
  ExperimentState,
  failureOf,
  followLog,
  listFiles,
  login,
  packDirectory,
  readFile,
  type Services,
  watchExperiment,
} from "../src/node.js";

const [directory = ".", downloads = "downloads"] = process.argv.slice(2);
const url = setting("RESOLUTE_URL");

// Sign in.
const token = await login(connect({ url }), setting("RESOLUTE_USER"), setting("RESOLUTE_PASSWORD"));
const services = connect({ url, token });

// Create an experiment from a directory.
const configYaml = await readLocal(path.join(directory, "config.yaml"), "utf8");
const requestId = crypto.randomUUID();
const modelDefinition = await packDirectory(directory);
const { experiment } = await services.experiments.createExperiment({
  requestId,
  spec: { configYaml },
  modelDefinition,
});
if (!experiment) throw new Error("no experiment");
const key = { case: "number", value: experiment.number } as const;

// Watch it to its end.
let last = experiment;
for await (const state of watchExperiment(services, experiment.number)) last = state;

// Read its best trial, a metric of it, and its log.
const orderBy = last.smallerIsBetter ? "best_validation" : "best_validation desc";
const best = (await services.trials.listTrials({ experiment: { key }, orderBy, pageSize: 1 })).trials[0];
if (!best) throw new Error("no trial");
const series = await services.metrics.getSeries({ trialId: best.trialId, group: "training", name: "loss" });
const log: string[] = [];
for await (const line of followLog(services, best.trialId)) if (line.origin === "task") log.push(line.message);

// Download its checkpoint; `readFile` verifies the digests.
const checkpointId = best.latestCheckpointId ?? "";
const files: Record<string, string> = {};
for await (const file of listFiles(services, checkpointId)) {
  const target = path.resolve(downloads, file.path);
  if (!target.startsWith(path.resolve(downloads) + path.sep)) throw new Error(`${file.path} lies outside of its checkpoint`);
  if (file.path.endsWith("/")) {
    await mkdir(target, { recursive: true });
    continue;
  }
  await mkdir(path.dirname(target), { recursive: true });
  await writeFile(target, await readFile(services, checkpointId, file));
  files[file.path] = file.digest;
}

// Get a typed error for each of five mistakes.
const failures = {
  noToken: await reasonOf(connect({ url }), (it) => it.experiments.listExperiments({})),
  noSuchExperiment: await reasonOf(services, (it) =>
    it.experiments.getExperiment({ experiment: { key: { case: "number", value: 999_999n } } }),
  ),
  wrongConfig: await reasonOf(services, (it) =>
    it.experiments.validateConfig({ configYaml: "searcher: {name: no_such_search}" }),
  ),
  endedExperiment: await reasonOf(services, (it) => it.experiments.pauseExperiment({ experiment: { key } })),
  sameRequestId: await reasonOf(services, (it) =>
    it.experiments.createExperiment({ requestId, spec: { configYaml: `${configYaml}\ndescription: another` } }),
  ),
};

console.log(
  JSON.stringify({
    experiment: Number(last.number),
    state: ExperimentState[last.state],
    trial: Number(best.number),
    best: best.bestValidation?.value,
    steps: series.steps.map(Number),
    losses: series.values,
    log,
    files,
    failures,
  }),
);

function setting(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`set ${name}`);
  return value;
}

async function reasonOf(it: Services, call: (it: Services) => Promise<unknown>): Promise<string> {
  try {
    await call(it);
  } catch (error) {
    return failureOf(error).reason ?? "";
  }
  throw new Error("the call should have failed");
}
