#!/usr/bin/env bash
# Installs the npm packages of the page where they are missing or old, and generates the code of the client.
set -euo pipefail
cd "$(dirname "$0")"
command -v npm >/dev/null || { echo 'npm is not here: install Node 20.19 or newer' >&2; exit 1; }

node --eval 'const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major * 100 + minor < 2019 ? 1 : 0)' ||
    { echo "Node $(node --version) is too old for the page's tools: install Node 20.19 or newer" >&2; exit 1; }

install_packages() {
    [[ node_modules/.package-lock.json -nt package-lock.json ]] || npm ci --silent --no-audit --no-fund --fetch-retries 4 ||
        { echo "npm could not install the packages that $PWD/package-lock.json names" >&2; exit 1; }
}

(cd ../../../clients/typescript && install_packages && npm run --silent generate)
install_packages
