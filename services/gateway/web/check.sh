#!/usr/bin/env bash
# Checks the types of the page and runs its unit tests, where Node and its packages can be had.
set -euo pipefail
cd "$(dirname "$0")"
./packages.sh || { echo 'the page is not checked' >&2; [[ -z ${CI:-} ]]; exit; }
npm run --silent check
npm run --silent test
