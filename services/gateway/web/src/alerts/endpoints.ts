// What a document of alerts names.

import { parse } from "yaml";

/** What somebody begins with who has none yet. */
export const EXAMPLE = `endpoints:
- {name: team, type: slack, url: "https://hooks.slack.com/services/T000/B000/XXXX"} # or teams, discord, webhook, email
rules:
- {on: experiment, states: [ERROR, COMPLETED], to: [team]}
- {on: alert, to: [team]} # what scripts say
- {on: hang, to: [team]}
- {on: queue_wait, seconds: 3600, to: [team]}
`;

/** Names of the endpoints of a document that the server has taken. */
export function endpointNames(document: string): string[] {
  const content = (document ? parse(document) : {}) as { endpoints?: readonly { name?: unknown }[] } | null;
  return (content?.endpoints ?? []).map(({ name }) => String(name));
}
