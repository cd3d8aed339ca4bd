#!/usr/bin/env bash
# Installs what `make clients` and `make front` need beside Python, where it is missing, with Debian's packages: Node, Go
# and Java with the libraries of their clients, jq and b3sum for curl, nginx. Wants root, or a sudo that does not ask.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=()
command -v npm >/dev/null || packages+=(nodejs npm)
command -v go >/dev/null || packages+=(golang-go)
# Of the two versions of golang/protobuf, grpc works with the code that the newer one generates.
[[ -d /usr/share/gocode/src/google.golang.org/grpc ]] || packages+=(
    golang-google-grpc-dev golang-google-genproto-dev golang-google-protobuf-dev golang-github-golang-protobuf-1-5-dev
    golang-github-google-uuid-dev golang-lukechampine-blake3-dev)
command -v protoc-gen-go >/dev/null || packages+=(protoc-gen-go-1-5)
command -v protoc-gen-go-grpc >/dev/null || packages+=(protoc-gen-go-grpc)
command -v javac >/dev/null || packages+=(default-jdk-headless)
command -v protoc >/dev/null || packages+=(protobuf-compiler)
command -v grpc_java_plugin >/dev/null || packages+=(protobuf-compiler-grpc-java-plugin)
clients/java/classpath.sh >/dev/null 2>&1 || packages+=(
    libgrpc-java libprotobuf-java libgoogle-common-protos-java libnetty-java libperfmark-java libguava-java libgoogle-gson-java
    libcommons-compress-java libbcprov-java libgeronimo-annotation-1.3-spec-java)
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
"${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -q -y --no-install-recommends "${packages[@]}"
