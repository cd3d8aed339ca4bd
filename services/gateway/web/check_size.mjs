// Fails when what a browser loads before the first view, with the worker that follows, is more than 150 kB, compressed.

import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMIT = 150_000;
const root = new URL("../resolute_gateway/page/", import.meta.url);
const document = readFileSync(new URL("index.html", root));
const files = [...document.toString().matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g)].map((match) => match[1]);
files.push(...readdirSync(new URL("assets", root)).filter((name) => name.startsWith("worker.")).map((name) => `assets/${name}`));
const sizes = [document, ...files.map((file) => readFileSync(new URL(file, root)))].map((content) => gzipSync(content).length);
const total = sizes.reduce((sum, size) => sum + size, 0);
console.log(`first load: ${(total / 1000).toFixed(1)} kB of ${LIMIT / 1000} kB`);
if (total > LIMIT) process.exit(1);
