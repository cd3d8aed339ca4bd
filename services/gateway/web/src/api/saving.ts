// Files that are handed to the browser's downloads.

/** Saves content under a name. */
export function saveAs(parts: BlobPart[], name: string): void {
  const url = URL.createObjectURL(new Blob(parts));
  saveUrl(url, name);
  URL.revokeObjectURL(url);
}

/** Saves what a URL has under a name. */
export function saveUrl(url: string, name: string): void {
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
}
