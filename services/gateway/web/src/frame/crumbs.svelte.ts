// Where the shown view is, below the experiments; also the title of the tab.

export interface Crumb {
  readonly label: string;
  /** Path below the root; none for the view itself. */
  readonly path?: string;
}

class Crumbs {
  trail = $state.raw<readonly Crumb[]>([]);

  set(trail: readonly Crumb[]): void {
    this.trail = trail;
    document.title = [...trail.map(({ label }) => label).reverse(), "Resolute"].join(" · ");
  }
}

export const crumbs = new Crumbs();
