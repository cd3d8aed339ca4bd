/** A random UUID; `crypto.randomUUID` is missing on pages that came unencrypted from another machine. */
export function newRequestId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** Ids of the calls of a form: one that is repeated after a break has the same, and one of another content an id of its own. */
export class RequestIds {
  #content: string | undefined;
  #id = "";

  of(content: unknown): string {
    const text = JSON.stringify(content);
    if (text !== this.#content) [this.#content, this.#id] = [text, newRequestId()];
    return this.#id;
  }
}
