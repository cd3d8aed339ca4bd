// Client of Resolute for browsers and Node. `resolute-client/node` adds gRPC and directories.

export { packFiles, type SourceFile } from "./archives.js";
export { listFiles, readFile } from "./checkpoints.js";
export { connect, login, type ConnectionOptions, type TokenSource } from "./connection.js";
export { failureOf, type Failure, type Reason, type Violation } from "./errors.js";
export { servicesOver, type Services } from "./services.js";
export { followLog, watchExperiment } from "./watching.js";
export { ExperimentState } from "../gen/resolute/api/experiments/v1/experiment_pb.js";
export { TrialState } from "../gen/resolute/api/experiments/v1/trial_pb.js";
