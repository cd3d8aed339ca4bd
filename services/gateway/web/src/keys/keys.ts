// Keys of the page and of the view that is shown.

export interface Key {
  /** As `KeyboardEvent.key` has it; two of them with a space between are typed one after the other. */
  readonly keys: string;
  readonly label: string;
  readonly run: () => void;
}

const bound = new Set<readonly Key[]>();
let first = "";

/** Binds keys until the returned function is called. */
export function bindKeys(keys: readonly Key[]): () => void {
  bound.add(keys);
  return () => bound.delete(keys);
}

/** All keys that do something now. */
export const boundKeys = (): Key[] => [...bound].flat();

/** The keys that open what goes to an experiment or a trial. */
export const GO_TO = "g g";

/** The key that keeps what is shown as a board. */
export const SAVE_VIEW = "b";

/** Runs what some keys are bound to. */
export function runKeys(keys: string): void {
  boundKeys().find((one) => one.keys === keys)?.run();
}

/** Runs what a key is bound to, unless it is typed into a field. */
export function pressed(event: KeyboardEvent): void {
  const target = event.target as HTMLElement | null;
  const typing = target?.closest("input:not([type=checkbox]):not([type=range]), textarea, select, dialog");
  // Without a place in the help: it is where people look for it by habit.
  if ((event.ctrlKey || event.metaKey) && event.key === "k") {
    event.preventDefault();
    runKeys(GO_TO);
    return;
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const typed = first ? `${first} ${event.key}` : event.key;
  const found = boundKeys().find(({ keys }) => keys === typed) ?? boundKeys().find(({ keys }) => keys === event.key);
  first = !found && boundKeys().some(({ keys }) => keys.startsWith(`${event.key} `)) ? event.key : "";
  // A button that has the focus takes Enter itself.
  if (!found || (event.key === "Enter" && target?.closest("a, button"))) return;
  event.preventDefault();
  found.run();
}
