#!/usr/bin/env bash
# Builds the clients in other languages. A language whose tools are missing is left out, and said so.
set -euo pipefail
cd "$(dirname "$0")"

if command -v npm >/dev/null; then
    (
        cd typescript
        [[ node_modules/.package-lock.json -nt package-lock.json ]] || npm ci --silent --no-audit --no-fund
        npm run --silent generate
        npm run --silent build
        npm run --silent browser
    )
else
    echo 'npm is not here: without the TypeScript client. Install Node 20 or newer.'
fi

missing=()
for tool in go protoc-gen-go protoc-gen-go-grpc; do
    command -v "$tool" >/dev/null || missing+=("$tool")
done
if ((${#missing[@]})); then
    echo "${missing[*]} not here: without the Go client. Run tools/install_clients.sh."
else
    go/build.sh
fi

missing=()
for tool in javac protoc grpc_java_plugin; do
    command -v "$tool" >/dev/null || missing+=("$tool")
done
if ((${#missing[@]})) || ! java/classpath.sh >/dev/null; then
    echo "${missing[*]:-a library} not here: without the Java client. Run tools/install_clients.sh."
else
    java/build.sh
fi
