// Importances of hyperparameters as the server estimates them.

import { Code } from "@connectrpc/connect";
import { failureOf } from "$client/errors.js";
import { services, within } from "$src/api/services";
import type { Importance } from "./importance";

/** Refusals for which another measure stands in; experiments outside of the cluster have no search. */
const WITHOUT = [Code.FailedPrecondition, Code.NotFound, Code.ResourceExhausted, Code.Unimplemented];

export interface Estimate {
  /** Largest first. */
  readonly found: readonly Importance[];
  /** Trials whose results were regarded, and those that have one. */
  readonly trials: number;
  readonly ofTrials: number;
  /** Hyperparameters that were left out. */
  readonly omitted: number;
}

export class ServerEstimate {
  /** The newest one. */
  now = $state.raw<Estimate | undefined>();
  #refusal = $state("");
  /** Why the server gives none; empty while it may. */
  readonly missing = $derived(
    this.#refusal || (this.now && !this.now.found.length ? `the search knows too few results that differ, of ${this.now.ofTrials} trials` : ""),
  );

  /** Asks for an estimate; returns what ends that. What was told before stays until then. */
  read(searchId: string): () => void {
    const ending = new AbortController();
    services.searcher.getImportances({ searchId }, within(ending.signal)).then(
      ({ importances, trials, trialsWithResult, omittedHparams }) => {
        this.now = { found: importances, trials, ofTrials: Number(trialsWithResult), omitted: omittedHparams };
        this.#refusal = "";
      },
      (error: unknown) => {
        const { code, message } = failureOf(error);
        if (!ending.signal.aborted && WITHOUT.includes(code)) this.#refusal = message; // others pass: it is asked again
      },
    );
    return () => ending.abort();
  }
}
