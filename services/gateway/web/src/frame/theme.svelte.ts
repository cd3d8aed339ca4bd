// Light or dark: what the system says, until someone pins one.

export type Theme = "light" | "dark";

const KEY = "resolute-theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");

function pinned(): Theme | undefined {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : undefined;
}

const wanted = (): Theme => pinned() ?? (system.matches ? "dark" : "light");

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
  if (other === (system.matches ? "dark" : "light")) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, other);
  applyTheme();
}

system.addEventListener("change", applyTheme);
