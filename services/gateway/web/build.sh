#!/usr/bin/env bash
# Builds the page into resolute_gateway/page, and measures what a browser loads first.
set -euo pipefail
cd "$(dirname "$0")"
./packages.sh
npm run --silent build -- --logLevel warn
node check_size.mjs
