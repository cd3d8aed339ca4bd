import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Experiment } from "$gen/resolute/api/experiments/v1/experiment_pb.js";

/** Those of some experiments that ended after a moment. */
export const endedSince = (ended: readonly Experiment[], since: number): readonly Experiment[] =>
  ended.filter(({ endTime }) => endTime && timestampMs(endTime) > since);
