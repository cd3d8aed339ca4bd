// Who is signed in, and whether the cluster answers.

import type { User } from "$gen/resolute/api/experiments/v1/user_pb.js";
import { failureOf } from "$client/errors.js";
import { onSignedOut, services } from "$src/api/services";

class Session {
  user = $state.raw<User | undefined>();
  signedOut = $state(false);
  problem = $state("");

  /** Asks who is signed in. */
  async begin(): Promise<void> {
    try {
      const { caller } = await services.access.getCurrentUser({});
      this.user = caller.case === "user" ? caller.value : undefined;
      this.problem = "";
    } catch (error) {
      this.problem = failureOf(error).message;
    }
  }
}

export const session = new Session();
onSignedOut(() => (session.signedOut = true));
