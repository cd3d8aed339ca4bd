#!/usr/bin/env bash
# Builds the page into resolute_gateway/page, after its types and its tests have been checked.
set -euo pipefail
cd "$(dirname "$0")"
command -v npm >/dev/null || { echo 'npm is not here: install Node 20.19 or newer' >&2; exit 1; }

node --eval 'const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major * 100 + minor < 2019 ? 1 : 0)' ||
    { echo "Node $(node --version) is too old for the page's tools: install Node 20.19 or newer" >&2; exit 1; }

install_packages() { [[ node_modules/.package-lock.json -nt package-lock.json ]] || npm ci --silent --no-audit --no-fund; }

(cd ../../../clients/typescript && install_packages && npm run --silent generate)
install_packages
npm run --silent check
npm run --silent test
npm run --silent build -- --logLevel warn
node check_size.mjs
