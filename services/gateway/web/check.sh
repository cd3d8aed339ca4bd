#!/usr/bin/env bash
# Checks the types of the page, runs its unit tests, and compares what is built of it with the files in the repository, where
# Node and its packages can be had.
set -euo pipefail
cd "$(dirname "$0")"
./packages.sh || { echo 'the page is not checked' >&2; [[ -z ${CI:-} ]]; exit; }
npm run --silent check
npm run --silent test
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
npm run --silent build -- --logLevel warn --emptyOutDir --outDir "$built"
diff --recursive --brief "$built" ../resolute_gateway/page ||
    { echo 'the built page differs from its sources: run `make page`, and commit what it builds' >&2; exit 1; }
