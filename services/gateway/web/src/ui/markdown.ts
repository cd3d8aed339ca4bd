// Markdown as a tree, which Markdown.svelte shows: nothing of a text ever becomes markup.

import { Lexer, type Token, type Tokens } from "marked";

export type { Token, Tokens };

/** More is shown as it was typed: somebody waits for it. */
const MOST_CHARACTERS = 20_000;

/** Texts that are nested deeper are none that somebody wrote to be read. */
const MOST_DEEP = 40;

/** The blocks of a text; nothing for one that is too long, or too deep, to be shown in time. */
export function blocksOf(text: string): readonly Token[] | undefined {
  if (text.length > MOST_CHARACTERS) return undefined;
  try {
    const blocks = new Lexer({ gfm: true, breaks: true }).lex(text);
    return depthOf(blocks) > MOST_DEEP ? undefined : blocks;
  } catch {
    return undefined; // nested so deep that even its reading ends
  }
}

function depthOf(tokens: readonly Token[]): number {
  let depth = 0;
  for (let level: readonly Token[] = tokens; level.length && depth <= MOST_DEEP; depth += 1) {
    level = level.flatMap((token) => [...("tokens" in token && token.tokens ? token.tokens : []), ...("items" in token ? (token.items as Token[]) : [])]);
  }
  return depth;
}

/** Where a link may lead: to the web, to a letter, or within this page; nothing for all else, such as scripts. */
export function safeHref(href: string): string | undefined {
  try {
    const { protocol } = new URL(href, "https://page.invalid/");
    return ["http:", "https:", "mailto:"].includes(protocol) ? href : undefined;
  } catch {
    return undefined;
  }
}
