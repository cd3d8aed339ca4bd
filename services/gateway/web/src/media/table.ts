// Tables that scripts log: read, joined over trials, filtered and sorted.

export type Cell = string | number | boolean | null;

export interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
}

const isCell = (value: unknown): value is Cell => value === null || ["string", "number", "boolean"].includes(typeof value);

/** Reads one; undefined where it is none. */
export function readTable(text: string): Table | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { columns, rows } = (value ?? {}) as Record<string, unknown>;
  if (!Array.isArray(columns) || !Array.isArray(rows)) return undefined;
  if (!columns.every((name) => typeof name === "string")) return undefined;
  if (!rows.every((row) => Array.isArray(row) && row.length === columns.length && row.every(isCell))) return undefined;
  return { columns: columns as string[], rows: rows as Cell[][] };
}

/** Several tables below each other, with a first column that says of which trial a row is; one alone stays as it is. */
export function joined(tables: readonly (readonly [trial: bigint, table: Table])[]): Table {
  const [first] = tables;
  if (tables.length === 1 && first) return first[1];
  const columns = [...new Set(tables.flatMap(([, table]) => table.columns))];
  const rows = tables.flatMap(([trial, table]) => {
    const places = columns.map((name) => table.columns.indexOf(name));
    return table.rows.map((row) => [Number(trial), ...places.map((at) => row[at] ?? null)]);
  });
  return { columns: ["trial", ...columns], rows };
}

/** The rows that have a text anywhere, in any case. */
export function filtered(rows: Table["rows"], text: string): Table["rows"] {
  const wanted = text.toLowerCase();
  return wanted ? rows.filter((row) => row.some((cell) => String(cell).toLowerCase().includes(wanted))) : rows;
}

/** Rows by a column: numbers by size, then texts, what is empty last in both directions. */
export function sorted(rows: Table["rows"], column: number, down: boolean): Table["rows"] {
  const sign = down ? -1 : 1;
  return [...rows].sort((one, other) => compare(one[column] ?? null, other[column] ?? null, sign));
}

function compare(one: Cell, other: Cell, sign: number): number {
  if (one === null || other === null) return Number(one === null) - Number(other === null);
  if (typeof one === "number" && typeof other === "number") return sign * (one - other);
  if (typeof one === "number" || typeof other === "number") return sign * (typeof one === "number" ? -1 : 1);
  return sign * String(one).localeCompare(String(other));
}
