#!/usr/bin/env bash
# Prints the jars that the client needs: those of Debian's packages, which tools/install_clients.sh installs.
set -euo pipefail

jars=()
for name in grpc-{api,context,core,netty,protobuf,protobuf-lite,stub} perfmark-api protobuf proto-google-common-protos \
    netty-{buffer,codec,codec-http,codec-http2,common,handler,handler-proxy,resolver,transport} \
    guava gson commons-compress bcprov geronimo-annotation-1.3-spec; do
    jar=/usr/share/java/$name.jar
    [[ -e $jar ]] || { echo "$jar is not here" >&2; exit 1; }
    jars+=("$jar")
done
IFS=:
echo "${jars[*]}"
