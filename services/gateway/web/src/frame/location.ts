// Addresses of views, without the browser.

export type View =
  | { readonly name: "experiments" }
  | { readonly name: "experiment"; readonly number: bigint }
  | { readonly name: "trial"; readonly number: bigint }
  | { readonly name: "moved"; readonly kind: "experiment" | "trial"; readonly number: bigint }
  | { readonly name: Place }
  | { readonly name: "unknown"; readonly path: string };

/** Views that a word alone leads to. */
const PLACES = ["sign-in", "now", "compare", "models", "boards", "create", "tasks", "tokens", "cluster"] as const;
type Place = (typeof PLACES)[number];

/** Which view a path below the page's root shows; a path of Determined's page, where that experiment or trial is now. */
export function viewOf(path: string): View {
  if (path === "" || path === "experiments") return { name: "experiments" };
  const place = PLACES.find((one) => one === path);
  if (place) return { name: place };
  const old = /^det\/(?:experiments\/\d+\/)?(experiments|trials)\/([1-9]\d{0,17})(?:\/|$)/.exec(path);
  if (old?.[2]) return { name: "moved", kind: old[1] === "trials" ? "trial" : "experiment", number: BigInt(old[2]) };
  const found = /^(experiments|trials)\/([1-9]\d{0,17})$/.exec(path.replace(/\/$/, ""));
  if (!found?.[2]) return { name: "unknown", path };
  return { name: found[1] === "trials" ? "trial" : "experiment", number: BigInt(found[2]) };
}

/** Where a number leads, such as "12", "e12" for the experiment or "t12" for the trial; nowhere for other texts. */
export function placesOf(text: string): { readonly path: string; readonly label: string }[] {
  const [, kind, number] = /^([et]?)\s*([1-9]\d{0,17})$/.exec(text.trim().toLowerCase()) ?? [];
  if (!number) return [];
  const places = [
    { kind: "e", path: `experiments/${number}`, label: `experiment ${number}` },
    { kind: "t", path: `trials/${number}`, label: `trial ${number}` },
  ];
  return places.filter((one) => !kind || one.kind === kind).map(({ path, label }) => ({ path, label }));
}

/** A query with some parameters changed; those without a value are left out, so that plain views have plain URLs. */
export function changedQuery(query: URLSearchParams, changes: Readonly<Record<string, string | undefined>>): string {
  const changed = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) changed.set(name, value);
    else changed.delete(name);
  }
  const text = changed.toString();
  return text ? `?${text}` : "";
}
