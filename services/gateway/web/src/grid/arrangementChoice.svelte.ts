// The arrangement of charts that a person wants where the URL names none.

import { route } from "$src/frame/route.svelte";
import { settings } from "$src/frame/settings.svelte";
import { readArrangement, ROOM, writtenArrangement, type Arrangement } from "./arrangement";

const NONE = "none";

class ArrangementChoice {
  readonly shown = $derived(readArrangement(route.get("charts") || settings.get("charts")));
  readonly isLarge = $derived((route.get("size") || settings.get("chart_size")) === "large");

  /** Why charts could not be arranged as was asked for. */
  problem = $state("");

  /** Arranges charts so from now on, or says why that cannot be. */
  set(arrangement: Arrangement): void {
    const text = writtenArrangement(arrangement);
    this.problem = text === undefined ? `The names of pinned and hidden charts have room for ${ROOM} characters together. Show a hidden chart, or unpin one, first.` : "";
    if (text === undefined) return;
    void settings.set("charts", text);
    route.set({ charts: text || NONE }, { typed: true });
  }

  resize(): void {
    const size = this.isLarge ? "" : "large";
    void settings.set("chart_size", size);
    route.set({ size: size || "small" }, { typed: true });
  }
}

export const arrangementChoice = new ArrangementChoice();
