// The columns that this browser shows where the URL names none.

import { route } from "$src/frame/route.svelte";
import { chosenColumns, USUAL, written, type Column } from "./columns";

const KEY = "resolute-columns";

class ColumnChoice {
  #kept = $state(localStorage.getItem(KEY) ?? "");

  /** What is shown. */
  readonly shown = $derived(chosenColumns(route.get("columns") || this.#kept));

  /** Shows a column, or hides it, from now on. */
  toggle(column: Column): void {
    const ids = new Set(this.shown.map(({ id }) => id));
    if (!ids.delete(column.id)) ids.add(column.id);
    const list = written(chosenColumns([...ids].join(",") || "none"));
    this.#kept = list === USUAL ? "" : list;
    if (this.#kept) localStorage.setItem(KEY, this.#kept);
    else localStorage.removeItem(KEY);
    route.set({ columns: this.#kept }, { typed: true });
  }
}

export const columnChoice = new ColumnChoice();
