// The columns that a person wants where the URL names none.

import { route } from "$src/frame/route.svelte";
import { settings } from "$src/frame/settings.svelte";
import { chosenColumns, USUAL, written, type Column } from "./columns";

class ColumnChoice {
  /** What is shown. */
  readonly shown = $derived(chosenColumns(route.get("columns") || settings.get("columns")));

  /** Shows a column, or hides it, from now on. */
  toggle(column: Pick<Column, "id">): void {
    const ids = new Set(this.shown.map(({ id }) => id));
    if (!ids.delete(column.id)) ids.add(column.id);
    const list = written(chosenColumns([...ids].join(",") || "none"));
    const kept = list === USUAL ? "" : list;
    void settings.set("columns", kept);
    route.set({ columns: kept }, { typed: true });
  }
}

export const columnChoice = new ColumnChoice();
