// The traceback of a failure, as a person reads it: the exception first, then the frames of his own code.

/** A frame, or the text between two chained exceptions. */
export interface Part {
  readonly text: string;
  /** Of an installed library or of Python itself. */
  readonly isLibrary: boolean;
}

export interface Traceback {
  /** What was raised last, such as "ValueError: …". */
  readonly exception: string;
  /** Frames of the exception, innermost first: own ones, and runs of library frames. */
  readonly frames: readonly Part[];
}

const HEAD = "Traceback (most recent call last):";
const FRAME = /^ {2}File "([^"]*)", line \d+/;
const LIBRARY = /(^|\/)(site-packages|dist-packages|python\d+\.\d+)\/|^<frozen /;

/** Reads the last traceback of a text; nothing where there is none. */
export function readTraceback(text: string): Traceback | undefined {
  const lines = text.split("\n");
  const head = lines.findLastIndex((line) => line.trimEnd().endsWith(HEAD));
  if (head < 0) return undefined;
  const frames: Part[] = [];
  let at = head + 1;
  while (at < lines.length && FRAME.test(lines[at] ?? "")) {
    const first = at;
    at += 1;
    while (at < lines.length && /^ {3,}/.test(lines[at] ?? "")) at += 1;
    const part = lines.slice(first, at).join("\n");
    frames.unshift({ text: part, isLibrary: LIBRARY.test(FRAME.exec(part)?.[1] ?? "") });
  }
  const exception = lines.slice(at).join("\n").trim();
  return exception ? { exception, frames: joined(frames) } : undefined;
}

/** What an explanation says beyond the last line of a failure that is shown beside it. */
export function beyond(explanation: string, failure: string): string {
  const last = failure.trim().split("\n").at(-1) ?? "";
  const [, said = ""] = /^[^:]*: (.*)/s.exec(explanation) ?? [];
  if (!said || (!said.startsWith(last) && !last.startsWith(said))) return explanation;
  const rest = said.slice(last.length).replace(/^; /, "");
  return rest.replace(/"([^"]*)"/, (quoted, text: string) => (failure.includes(text) ? "such a failure" : quoted));
}

/** Puts library frames that follow each other together. */
function joined(frames: readonly Part[]): Part[] {
  const parts: Part[] = [];
  for (const frame of frames) {
    const last = parts.at(-1);
    if (frame.isLibrary && last?.isLibrary) parts[parts.length - 1] = { ...frame, text: `${last.text}\n${frame.text}` };
    else parts.push(frame);
  }
  return parts;
}

/** How many frames a part has. */
export const frameCount = (part: Part): number => part.text.split("\n").filter((line) => FRAME.test(line)).length;
