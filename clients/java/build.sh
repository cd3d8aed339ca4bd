#!/usr/bin/env bash
# Generates the code of the contract, compiles it, the client and the programs into classes/, and writes starters into bin/.
set -euo pipefail
cd "$(dirname "$0")"

buf generate
rm -rf classes
mkdir classes
# What is compiled here comes before the jars.
classpath=classes:$(./classpath.sh)
# A compiler that runs once is not worth compiling.
compile() { javac -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC -proc:none -d classes -cp "$classpath" "$@"; }
# Generated code is not ours to mend, and names an annotation that the JDK has no more.
compile -nowarn @<(find gen -name '*.java')
compile -Xlint:all,-path,-processing -Werror @<(find src programs -name '*.java')

mkdir -p bin
for program in Scenario Conformance; do
    starter=bin/${program,,}
    printf '#!/bin/sh\nexec java -XX:TieredStopAtLevel=1 -cp "%s" %s "$@"\n' "$PWD/$classpath" "$program" >"$starter"
    chmod +x "$starter"
done
