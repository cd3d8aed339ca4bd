import type { Continuation } from "$gen/resolute/api/experiments/v1/continuation_pb.js";

/** What is kept, for people. */
export function keptText({ trials, keepsSearch, maxTrials, maxLength }: Continuation): string[] {
  const said: string[] = [];
  for (const { trial, keepsWeights, keepsSteps } of trials.slice(0, 5)) {
    const steps = keepsSteps ? "goes on counting steps" : "counts steps from zero";
    said.push(`Trial ${trial?.number} ${keepsWeights ? "keeps its weights" : "starts without weights"} and ${steps}.`);
  }
  if (trials.length > 5) said.push(`${trials.length - 5} more trials go on.`);
  if (keepsSearch) said.push("The decisions of the search so far stay.");
  if (maxTrials !== undefined) said.push(`The search has ${maxTrials} trials from now on.`);
  if (maxLength !== undefined) said.push(`Its longest trial has length ${maxLength} from now on.`);
  return said;
}
