#!/usr/bin/env bash
# Installs what `make clients` and `make front` need beside Python, where it is missing, with Debian's packages: Node, Go
# with the libraries of its client, jq and b3sum for curl, nginx. Wants root, or a sudo that does not ask.
set -euo pipefail

packages=()
command -v npm >/dev/null || packages+=(nodejs npm)
command -v go >/dev/null || packages+=(golang-go)
# Of the two versions of golang/protobuf, grpc works with the code that the newer one generates.
[[ -d /usr/share/gocode/src/google.golang.org/grpc ]] || packages+=(
    golang-google-grpc-dev golang-google-genproto-dev golang-google-protobuf-dev golang-github-golang-protobuf-1-5-dev
    golang-github-google-uuid-dev golang-lukechampine-blake3-dev)
command -v protoc-gen-go >/dev/null || packages+=(protoc-gen-go-1-5)
command -v protoc-gen-go-grpc >/dev/null || packages+=(protoc-gen-go-grpc)
command -v curl >/dev/null || packages+=(curl)
command -v jq >/dev/null || packages+=(jq)
command -v b3sum >/dev/null || packages+=(b3sum)
PATH="$PATH:/usr/sbin:/sbin" command -v nginx >/dev/null || packages+=(nginx-light)
((${#packages[@]})) || exit 0

if ! command -v apt-get >/dev/null; then
    echo "install these packages, or what they are called here: ${packages[*]}" >&2
    exit 1
fi
if ((EUID == 0)); then as_root=(env); else as_root=(sudo -n env); fi
echo "installing ${packages[*]}"
"${as_root[@]}" apt-get update -q
"${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${packages[@]}"
