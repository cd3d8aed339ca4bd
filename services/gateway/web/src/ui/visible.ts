// Control characters, and those that change the direction of text, could make one name look like another.
// eslint-disable-next-line no-control-regex
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** A name that somebody gave, with characters that do not show written as \uXXXX, as the command line writes them. */
export function visible(name: string): string {
  return name.replace(UNSEEN, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
