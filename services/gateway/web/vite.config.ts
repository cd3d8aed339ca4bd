import { svelte } from "@sveltejs/vite-plugin-svelte";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

export default defineConfig({
  base: "./", // the page may be served below a path of a proxy
  plugins: [svelte()],
  resolve: {
    alias: {
      $client: path("../../../clients/typescript/src"),
      $gen: path("../../../clients/typescript/gen"),
      $src: path("./src"),
    },
    dedupe: ["@bufbuild/protobuf", "@connectrpc/connect"], // the client's source would bring its own copies
  },
  worker: { rollupOptions: { output: { entryFileNames: "assets/[name].js" } } },
  build: {
    outDir: path("../resolute_gateway/page"),
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0, // the content security policy allows files of this origin alone
    modulePreload: { polyfill: false },
    reportCompressedSize: false, // check_size.mjs measures what counts
    rollupOptions: {
      // The files stand in the repository: without hashes in their names, a change touches only what it changes. The gateway
      // serves them below a digest of them all.
      output: { entryFileNames: "assets/[name].js", chunkFileNames: "assets/[name].js", assetFileNames: "assets/[name][extname]" },
    },
  },
  test: { include: ["test/**/*.test.ts"], testTimeout: 60_000 },
});
