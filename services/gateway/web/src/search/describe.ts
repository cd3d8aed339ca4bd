// Events and decisions of a search in words, made from the data that was recorded with them.

import type { Event } from "$gen/resolute/api/searcher/v1/event_pb.js";
import { ExitReason } from "$gen/resolute/api/searcher/v1/event_pb.js";
import type { Operation } from "$gen/resolute/api/searcher/v1/operation_pb.js";
import { type Reason, ReasonKind as Kind } from "$gen/resolute/api/searcher/v1/reason_pb.js";
import { leaves } from "$src/api/values";
import { shortNumber } from "$src/ui/format";

const EXITS: Readonly<Record<number, string>> = {
  [ExitReason.ERRORED]: "failed",
  [ExitReason.USER_REQUESTED_STOP]: "ended by itself",
  [ExitReason.USER_CANCELED]: "was canceled by a person",
  [ExitReason.INVALID_HP]: "refused its hyperparameters",
  [ExitReason.INIT_INVALID_HP]: "refused its hyperparameters before training",
};

const REASONS: Readonly<Record<number, string>> = {
  [Kind.CLIENT_DECISION]: "the client of the search decided so",
  [Kind.METHOD_DECISION]: "the search method decided so",
  [Kind.INITIAL_TRIAL]: "the search begins with it",
  [Kind.FREE_SLOT]: "there was room for another trial",
  [Kind.REPLACEMENT]: "it replaces a trial whose hyperparameters were refused",
  [Kind.SUGGESTED]: "a sampler suggested it",
  [Kind.FIRST_LENGTH]: "its first length",
  [Kind.TOP_OF_RUNG]: "it is among the best of its rung",
  [Kind.BELOW_TOP_OF_RUNG]: "it is not among the best of its rung",
  [Kind.RUNG_COMPLETE]: "no later report can bring it among the best of its rung",
  [Kind.MAX_LENGTH_REACHED]: "it has the longest length that the search gives",
  [Kind.INVALID_HYPERPARAMETERS]: "its hyperparameters were refused",
  [Kind.SEARCH_EXTENDED]: "the search was extended",
  [Kind.TRIAL_RETRIED]: "the trial is tried again",
  [Kind.ALL_TRIALS_CLOSED]: "every trial is done",
  [Kind.ALL_TRIALS_FAILED]: "every trial failed",
  [Kind.ALL_TRIALS_CANCELED]: "every trial was canceled",
  [Kind.TOO_MANY_REFUSED]: "50 sets of hyperparameters in a row were refused by the code",
};

/** Says what happened in a search whose trials are known by number. */
export class Describer {
  readonly #numbers: ReadonlyMap<string, bigint>;
  readonly #metric: string;

  constructor(numbers: ReadonlyMap<string, bigint>, metric: string) {
    this.#numbers = numbers;
    this.#metric = metric;
  }

  /** An event, and the number of the trial that it is of. */
  event({ kind }: Event): { text: string; trial?: bigint } {
    const of = (trialKey: string, text: string) => {
      const trial = this.#numbers.get(trialKey);
      return trial === undefined ? { text: `a trial: ${text}` } : { text, trial };
    };
    switch (kind.case) {
      case "started":
        return { text: "The search began" };
      case "trialCreated":
        return of(kind.value.trialKey, "created");
      case "validationCompleted":
        return of(kind.value.trialKey, `${this.#metric} ${shortNumber(kind.value.metric)} at length ${kind.value.length}`);
      case "validationReported":
        return of(kind.value.trialKey, `${this.#metric} ${shortNumber(kind.value.metric)} at ${shortNumber(kind.value.timeMetric)}`);
      case "trialClosed":
        return of(kind.value.trialKey, "done");
      case "trialExited":
        return of(kind.value.trialKey, `exited early: it ${EXITS[kind.value.reason] ?? "ended for an unknown reason"}`);
      case "trialFenced":
        return of(kind.value.trialKey, `runs before ${kind.value.minRun} ended`);
      case "retried":
        return of(kind.value.trialKey, "tried again");
      case "operationsPosted":
        return { text: `The client answered event ${kind.value.answeredSequence}` };
      case "suggested":
        return { text: `The sampler made suggestion ${kind.value.number}${kind.value.failure ? ` and failed: ${kind.value.failure}` : ""}` };
      case "extended":
        return { text: "The search was extended" };
      default:
        return { text: "An event of a newer version" };
    }
  }

  /** A decision with its reason. */
  operation({ kind, reason }: Operation): string {
    const why = reason ? this.#reason(reason) : "";
    return `${this.#decision(kind)}${why ? `: ${why}` : ""}`;
  }

  #decision(kind: Operation["kind"]): string {
    switch (kind.case) {
      case "create": {
        const hparams = leaves(kind.value.hparams).slice(0, 6).map(([name, text]) => `${name}=${text}`);
        return `Create ${this.#trial(kind.value.trialKey)}${hparams.length ? ` (${hparams.join(", ")})` : ""}`;
      }
      case "validateAfter":
        return `Train ${this.#trial(kind.value.trialKey)} to ${kind.value.length}`;
      case "close":
        return `Close ${this.#trial(kind.value.trialKey)}`;
      case "stop":
        return `Stop ${this.#trial(kind.value.trialKey)}`;
      case "promote":
        return `Promote ${this.#trial(kind.value.trialKey)} to rung ${kind.value.rung + 1}`;
      case "progress":
        return `Progress ${Math.round(kind.value.progress * 100)} %`;
      case "shutdown":
        return "End the search";
      default:
        return "A decision of a newer version";
    }
  }

  #trial(key: string): string {
    const number = this.#numbers.get(key);
    return number === undefined ? "a trial" : `trial ${number}`;
  }

  #reason(reason: Reason): string {
    const parts = [REASONS[reason.kind] ?? ""];
    if (reason.rank !== undefined && reason.rankOf !== undefined) parts.push(`place ${reason.rank} of ${reason.rankOf}`);
    if (reason.rung !== undefined) parts.push(`rung ${reason.rung + 1}`);
    if (reason.metric !== undefined) parts.push(`${this.#metric} ${shortNumber(reason.metric)}`);
    if (reason.threshold !== undefined) parts.push(`threshold ${shortNumber(reason.threshold)}`);
    return parts.filter(Boolean).join(", ");
  }
}
