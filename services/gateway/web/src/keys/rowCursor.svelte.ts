// The row of a table that keys are about.

import type { Key } from "./keys";

export interface RowActions {
  /** Numbers of the rows, as they are shown. */
  readonly rows: () => readonly bigint[];
  readonly choose: (number: bigint) => void;
  readonly open: (number: bigint) => void;
  /** Told of the row that the cursor has come to. */
  readonly reach?: (number: bigint) => void;
}

export class RowCursor {
  /** Position of the row; −1 before a key was pressed. */
  at = $state(-1);

  /** Keys that move the cursor, and that choose and open its row. */
  keys({ rows, choose, open, reach }: RowActions): Key[] {
    const move = (by: number) => {
      this.at = Math.max(0, Math.min(rows().length - 1, this.at + by));
      const number = rows()[this.at];
      if (number === undefined) return;
      document.getElementById(`row-${number}`)?.scrollIntoView({ block: "nearest" });
      reach?.(number);
    };
    const act = (what: (number: bigint) => void) => {
      const number = rows()[this.at];
      if (number !== undefined) what(number);
    };
    return [
      { keys: "j", label: "Next row", run: () => move(1) },
      { keys: "k", label: "Previous row", run: () => move(-1) },
      { keys: "x", label: "Select the row", run: () => act(choose) },
      { keys: "Enter", label: "Open the row", run: () => act(open) },
    ];
  }
}
