// Light or dark: what the system says, until someone pins one.

import { settings } from "./settings.svelte";

export type Theme = "light" | "dark";

const system = window.matchMedia("(prefers-color-scheme: dark)");
const ofSystem = (): Theme => (system.matches ? "dark" : "light");

function wanted(): Theme {
  const pinned = settings.get("theme");
  return pinned === "light" || pinned === "dark" ? pinned : ofSystem();
}

/** The theme that is shown. */
export const theme = $state({ shown: wanted() });

/** Shows the theme that is wanted now. */
export function applyTheme(): void {
  theme.shown = wanted();
  document.documentElement.dataset["theme"] = theme.shown;
}

/** Pins the other theme; back to the system's where that is the same. */
export function toggleTheme(): void {
  const other: Theme = theme.shown === "dark" ? "light" : "dark";
  void settings.set("theme", other === ofSystem() ? "" : other);
  applyTheme();
}

system.addEventListener("change", applyTheme);
