// Whether somebody writes into a dialog or a form: what is typed ends with its view, so no view may begin anew meanwhile.

import { untrack } from "svelte";

class Writing {
  #places = $state(0);

  get isUnderWay(): boolean {
    return this.#places > 0;
  }

  /** Begins at one place; returns what ends that. */
  begin(): () => void {
    untrack(() => (this.#places += 1));
    return () => (this.#places -= 1);
  }
}

export const writing = new Writing();
