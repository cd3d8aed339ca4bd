// How far a trial is, how fast, and where its time went.

import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Experiment } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import type { Trial } from "$gen/resolute/api/experiments/v1/trial_pb.js";
import { ago, duration, shortNumber, stepsRate } from "$src/ui/format";

/** The steps of its last report; before the first a dash. */
export const reportedSteps = (trial: Trial): string => shortNumber(trial.reportedSteps === undefined ? undefined : Number(trial.reportedSteps));

/** Such as "12.3 steps/s"; nothing before it is known. */
export const rate = (trial: Trial): string => stepsRate(trial.stepsPerSecond);

/** What the steps of a trial mean, for titles. */
export function aboutSteps(trial: Trial, now: number): string {
  if (trial.reportedSteps === undefined) return "it has reported nothing yet";
  return [`reported ${ago(trial.reportTime, now)}`, rate(trial)].filter(Boolean).join(", ");
}

/** What holds slots for some of its time: a trial, or an experiment while any of its trials does. */
type Held = Pick<Trial | Experiment, "createTime" | "endTime" | "runSeconds" | "runStartTime">;

/** How long it held slots and how long it waited for them, in seconds. */
export function times(one: Held, now: number): { ran: number; waited: number } {
  const current = one.runStartTime ? (now - timestampMs(one.runStartTime)) / 1000 : 0;
  const ran = one.runSeconds + Math.max(0, current);
  const end = one.endTime ? timestampMs(one.endTime) : now;
  const whole = one.createTime ? (end - timestampMs(one.createTime)) / 1000 : 0;
  return { ran, waited: Math.max(0, whole - ran) };
}

/** Such as "ran 2 s, waited 3 min 57 s". */
export function spent(one: Held, now: number): string {
  const { ran, waited } = times(one, now);
  return `ran ${duration(ran)}, waited ${duration(waited)}`;
}
