// Browsers allow six connections to a server over all tabs, and streams hold theirs. A few tabs have a stream at a time: those
// that were looked at last.

const PLACES = 4;

/** One of the few places for streams that the tabs of a browser share. */
export class Place {
  readonly #locks: LockManager | undefined;
  readonly #onLost: () => void;
  #release: (() => void) | undefined;
  #taking = false;

  /**
   * @param locks Shared by all tabs; browsers have none on pages that came unencrypted from another machine.
   * @param onLost Told when another tab has taken the place.
   */
  constructor(locks: LockManager | undefined, onLost: () => void) {
    this.#locks = locks;
    this.#onLost = onLost;
  }

  /** Takes a place, from another tab if none is free. Does nothing where this tab has one. */
  async take(): Promise<void> {
    if (this.#release || this.#taking) return;
    this.#taking = true;
    for (let number = 0; number < PLACES && !this.#release; number += 1) await this.#hold(number, { ifAvailable: true });
    if (!this.#release) await this.#hold(Math.floor(Math.random() * PLACES), { steal: true });
    this.#taking = false;
  }

  /** Gives the place back. */
  leave(): void {
    this.#release?.();
    this.#release = undefined;
  }

  async #hold(number: number, options: LockOptions): Promise<void> {
    if (!this.#locks) {
      this.#release = () => undefined;
      return;
    }
    const locks = this.#locks;
    await new Promise<void>((settled) => {
      const held = (lock: Lock | null) => {
        const done = lock ? new Promise<void>((release) => (this.#release = release)) : undefined;
        settled();
        return done;
      };
      locks.request(`resolute-stream-${number}`, options, held).catch(() => {
        this.#release = undefined;
        settled();
        this.#onLost();
      });
    });
  }
}
