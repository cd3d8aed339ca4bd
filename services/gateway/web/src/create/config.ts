// The config that a new experiment begins with.

import { isMap, parseDocument } from "yaml";

export const EXAMPLE = `name: my-experiment
entrypoint: python3 train.py

# One trial. For a search, take adaptive_asha with max_trials, and give ranges below.
searcher:
  name: single
  metric: validation_loss
  smaller_is_better: true
  max_length: {batches: 200}

hyperparameters:
  lr: 0.05

resources:
  slots_per_trial: 1
`;

/** A config that belongs to a project, unless it names one itself. What cannot be read stays: the server says what is wrong. */
export function inProject(text: string, { workspace, project }: { readonly workspace: string; readonly project: string }): string {
  const document = parseDocument(text);
  if (document.errors.length || !isMap(document.contents) || document.has("workspace") || document.has("project")) return text;
  document.set("workspace", workspace);
  document.set("project", project);
  return document.toString({ lineWidth: 0 });
}
