// Who is signed in, and whether the cluster answers.

import type { User } from "$gen/resolute/api/experiments/v1/user_pb.js";
import { readUntilDone } from "$src/api/reading";
import { onSignedOut, services, within } from "$src/api/services";
import { settings } from "./settings.svelte";
import { applyTheme } from "./theme.svelte";

class Session {
  user = $state.raw<User | undefined>();
  signedOut = $state(false);
  problem = $state("");

  #asking: AbortController | undefined;

  /** Asks who is signed in, until there is an answer. */
  async begin(): Promise<void> {
    this.#asking?.abort();
    const { signal } = (this.#asking = new AbortController());
    const ask = () => services.access.getCurrentUser({}, within(signal));
    const answer = await readUntilDone(ask, signal, (problem) => (this.problem = problem));
    if (!answer) return;
    void settings.load(signal).then(applyTheme);
    this.user = answer.caller.case === "user" ? answer.caller.value : undefined;
  }
}

export const session = new Session();
onSignedOut(() => (session.signedOut = true));
