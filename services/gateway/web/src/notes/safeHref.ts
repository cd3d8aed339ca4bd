const SCHEMES = new Set(["http:", "https:", "mailto:"]);

/** The URL of a link that a person wrote; nothing where it could run a script, or is none. */
export function safeHref(href: string): string | undefined {
  try {
    const url = new URL(href);
    return SCHEMES.has(url.protocol) ? url.href : undefined;
  } catch {
    return undefined;
  }
}
