// Boards: views that a person has named, each as its address, which holds the whole state of a view.

export interface Board {
  /** The setting that has it. */
  readonly setting: string;
  readonly name: string;
  /** Path below the root, with its query. */
  readonly path: string;
}

export const PREFIX = "board.";
/** A user may have a hundred settings of all kinds. */
export const MOST_BOARDS = 60;
export const MOST_LETTERS = 200;
/** Letters of the name of a board of a project. */
export const MOST_NAME = 80;
const ROOM = 4000;

/** The boards among some settings, by their names. What cannot be read is left out. */
export function boardsOf(settings: readonly (readonly [name: string, value: string])[]): Board[] {
  return settings.flatMap(([setting, value]) => read(setting, value) ?? []).sort((a, b) => a.name.localeCompare(b.name));
}

function read(setting: string, value: string): Board | undefined {
  try {
    const { name, path } = JSON.parse(value) as { name?: unknown; path?: unknown };
    return typeof name === "string" && typeof path === "string" ? { setting, name, path: pathWithin(path) } : undefined;
  } catch {
    return undefined;
  }
}

/** A path of this page, whatever stands there: an address that begins with two slashes is that of another server. */
export const pathWithin = (path: string): string => path.replace(/^[/\\]+/, "");

/** Where a board of a project is shown. */
export const sharedPath = (projectId: bigint, boardId: bigint): string => `boards?project=${projectId}&board=${boardId}`;

/** What a setting has of a board; nothing where it has no room for it. */
export function written({ name, path }: Pick<Board, "name" | "path">): string | undefined {
  const text = JSON.stringify({ name, path });
  return text.length > ROOM ? undefined : text;
}

/** Parameters of views that come from a setting where the address has none. */
const CHOSEN = { charts: "charts", size: "chart_size" } as const;

/** An address that shows the same for everybody: with the arrangement of charts that is this person's own. */
export function wholeAddress(path: string, query: string, setting: (name: string) => string): string {
  const whole = new URLSearchParams(query);
  if (/^(compare|trials\/)/.test(path)) {
    for (const [parameter, name] of Object.entries(CHOSEN)) if (!whole.has(parameter) && setting(name)) whole.set(parameter, setting(name));
  }
  const text = whole.toString();
  return text ? `${path}?${text}` : path;
}

/** What a board shows, in words, such as "trials 12". */
export const placeOf = (path: string): string => path.split("?")[0]?.replace("/", " ") || "experiments";
