#!/usr/bin/env bash
# Generates the code of the contract, tests the client and builds the programs into bin/. Where Debian's packages of the libraries are
# installed they are used, so that nothing is downloaded; elsewhere Go fetches what go.mod names.
set -euo pipefail
cd "$(dirname "$0")"

buf generate
mkdir -p bin
debian=/usr/share/gocode
if [[ -d $debian/src/google.golang.org/grpc && -d $debian/src/lukechampine.com/blake3 ]]; then
    # Without modules Go looks for packages by their paths.
    workspace=$(mktemp -d)
    trap 'rm -rf "$workspace"' EXIT
    mkdir -p "$workspace/src/github.com/resolute-train/resolute/clients"
    ln -s "$PWD" "$workspace/src/github.com/resolute-train/resolute/clients/go"
    export GO111MODULE=off GOPATH="$workspace:$debian" GOFLAGS=
    cd "$workspace/src/github.com/resolute-train/resolute/clients/go"
else
    go mod tidy
fi
[[ -z $(gofmt -l ./*.go scenario conformance) ]] || { gofmt -d ./*.go scenario conformance; exit 1; }
go vet . ./scenario ./conformance
go test .
go build -o bin/scenario ./scenario
go build -o bin/conformance ./conformance
