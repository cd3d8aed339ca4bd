// The three ways in which work goes on, each with the words that say so before it is done.

import type { Continuation } from "$gen/resolute/api/experiments/v1/continuation_pb.js";
import { ContinuationService } from "$gen/resolute/api/experiments/v1/continuation_service_pb.js";
import type { Experiment } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import { clientOf } from "$src/api/services";

const service = clientOf(ContinuationService);

interface Asked {
  readonly requestId: string;
  readonly configYaml: string;
  readonly configIsWhole: boolean;
  readonly validateOnly: boolean;
}
interface Answer {
  readonly experiment?: Experiment | undefined;
  readonly continuation?: Continuation | undefined;
}

export interface Way {
  readonly name: string;
  readonly title: string;
  readonly says: string;
  readonly call: (asked: Asked, signal: AbortSignal) => Promise<Answer>;
}

const byNumber = (value: bigint) => ({ key: { case: "number", value } }) as const;

export const continueExperiment = (number: bigint): Way => ({
  name: "Continue",
  title: `Continue experiment ${number}`,
  says: "The experiment goes on as itself: failed trials are tried again from their checkpoints, and the search gets what is changed here.",
  call: (asked, signal) => service.continueExperiment({ ...asked, experiment: byNumber(number) }, { signal }),
});

export const continueTrial = (number: bigint): Way => ({
  name: "Continue",
  title: `Continue trial ${number}`,
  says: "A new experiment begins whose one trial starts from the newest checkpoint of this one.",
  call: (asked, signal) => service.continueTrial({ ...asked, trial: byNumber(number) }, { signal }),
});

export const fork = (number: bigint): Way => ({
  name: "Fork",
  title: `Fork experiment ${number}`,
  says: "A new experiment begins with the config and the code of this one, without its weights.",
  call: (asked, signal) => service.forkExperiment({ ...asked, experiment: byNumber(number) }, { signal }),
});
