// The last thing that was done and can be undone.

import { failureOf } from "$client/errors.js";

interface Done {
  /** What was done, as a sentence. */
  readonly says: string;
  readonly undo: () => Promise<void>;
}

const SHOWN_MS = 15_000;

class Undo {
  done = $state.raw<Done | undefined>();
  problem = $state("");
  busy = $state(false);
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Offers to undo something, for some seconds. */
  offer(says: string, undo: () => Promise<void>): void {
    clearTimeout(this.#timer);
    this.problem = "";
    this.done = { says, undo };
    this.#timer = setTimeout(() => this.close(), SHOWN_MS);
  }

  /** Undoes it. */
  async run(): Promise<void> {
    if (!this.done || this.busy) return;
    clearTimeout(this.#timer);
    this.busy = true;
    this.problem = "";
    try {
      await this.done.undo();
      this.close();
    } catch (error) {
      this.problem = failureOf(error).message;
    }
    this.busy = false;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.done = undefined;
  }
}

export const undo = new Undo();
