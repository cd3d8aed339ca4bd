// Values that change more often than they can be worked with.

/** Shows the first value at once, and from then on the newest one, no more often than so many milliseconds. */
export class Throttled<Value> {
  shown = $state.raw<Value | undefined>();
  #newest: Value | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #everyMs: number;

  constructor(everyMs: number) {
    this.#everyMs = everyMs;
  }

  /** Takes a value. */
  offer(value: Value): void {
    this.#newest = value;
    if (this.#timer !== undefined) return;
    this.shown = value;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#newest !== this.shown) this.offer(this.#newest as Value);
    }, this.#everyMs);
  }

  /** Shows a value at once: what somebody waits for. */
  show(value: Value): void {
    this.end();
    this.#timer = undefined;
    this.offer(value);
  }

  /** Shows nothing newer. */
  end(): void {
    clearTimeout(this.#timer);
  }
}
