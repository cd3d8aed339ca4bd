// The URL holds the whole state of a view.

import { changedQuery, viewOf, type View } from "./location";

/** Path of the page's root, which a proxy may have put something before. */
const ROOT = new URL(".", document.baseURI).pathname;

function read(): { view: View; query: URLSearchParams } {
  const { pathname, search } = window.location;
  return { view: viewOf(pathname.slice(ROOT.length)), query: new URLSearchParams(search) };
}

/** What a view reads of its state, and changes of it. */
export type Parameters = Pick<Route, "get" | "set">;

class Route {
  #now = $state.raw(read());

  constructor() {
    window.addEventListener("popstate", () => (this.#now = read()));
  }

  get view(): View {
    return this.#now.view;
  }

  /** Path of the view below the root. */
  get path(): string {
    return window.location.pathname.slice(ROOT.length);
  }

  /** A parameter of the view; empty for none. */
  get(name: string): string {
    return this.#now.query.get(name) ?? "";
  }

  /** Changes parameters of this view. What is typed letter by letter makes no entries in the history. */
  set(changes: Readonly<Record<string, string | undefined>>, { typed = false } = {}): void {
    this.#show(window.location.pathname + changedQuery(this.#now.query, changes), typed);
  }

  /** Shows another view. */
  go(path: string): void {
    this.#show(this.url(path), false);
  }

  /** Shows another view in the place of this one. */
  replace(path: string): void {
    this.#show(this.url(path), true);
  }

  /** URL of a path below the root. */
  url(path: string): string {
    return ROOT + path;
  }

  #show(url: string, typed: boolean): void {
    if (typed) window.history.replaceState(null, "", url);
    else window.history.pushState(null, "", url);
    this.#now = read();
  }
}

export const route = new Route();

/** Links of this page change the view without loading it anew. */
export function followLinks(event: MouseEvent): void {
  const link = (event.target as Element | null)?.closest("a");
  const other = event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey;
  if (!link || other || link.target || link.hasAttribute("download") || link.origin !== window.location.origin) return;
  if (!link.pathname.startsWith(ROOT)) return;
  event.preventDefault();
  route.go(link.pathname.slice(ROOT.length) + link.search);
}
