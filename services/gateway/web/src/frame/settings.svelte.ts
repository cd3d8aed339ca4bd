// What a person has set for the page. The server keeps it for the user; this browser has a copy, so that the page looks right
// before the server has answered, and where it does not.

import { readUntilDone } from "$src/api/reading";
import { services, within } from "$src/api/services";

const KEY = "resolute-settings";
type Values = Readonly<Record<string, string>>;

function copy(): Values {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return Object.fromEntries(Object.entries(kept ?? {}).filter(([, value]) => typeof value === "string"));
  } catch {
    return {};
  }
}

class Settings {
  #values = $state.raw(copy());
  /** Whether the server has said what it keeps, or that it does not. */
  isLoaded = $state(false);
  /** What was set and the server may not know yet. */
  #unsent: Values = {};

  /** The value of a setting; empty for none. */
  get(name: string): string {
    return this.#values[name] ?? "";
  }

  /** The settings whose names begin so. */
  beginning(prefix: string): [name: string, value: string][] {
    return Object.entries(this.#values).filter(([name]) => name.startsWith(prefix));
  }

  /** Reads what the server keeps for the user who is signed in. */
  async load(signal: AbortSignal): Promise<void> {
    const answer = await readUntilDone(() => services.access.getUserSettings({}, within(signal)), signal, () => undefined);
    if (answer) this.#show({ ...answer.settings, ...this.#unsent });
    if (!signal.aborted) this.isLoaded = true;
  }

  /** Sets a setting; an empty value removes it. What the server did not take is sent again with the next change. */
  async set(name: string, value: string): Promise<void> {
    this.#unsent = { ...this.#unsent, [name]: value };
    this.#show({ ...this.#values, [name]: value });
    const sent = this.#unsent;
    try {
      await services.access.updateUserSettings({ settings: sent });
      this.#unsent = Object.fromEntries(Object.entries(this.#unsent).filter(([one, now]) => sent[one] !== now));
    } catch {
      // It holds in this browser meanwhile.
    }
  }

  #show(values: Values): void {
    this.#values = Object.fromEntries(Object.entries(values).filter(([, value]) => value));
    localStorage.setItem(KEY, JSON.stringify(this.#values));
  }
}

export const settings = new Settings();
