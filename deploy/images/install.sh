#!/bin/sh
# install.sh ENVIRONMENT LOCK, during a build: installs the locked packages and Resolute from /wheels, where they are mounted.
# The same wheels give the same bytes: nothing in the environment has the time or the order of this run.
set -eu
environment=$1
lock=$2
export PYTHONHASHSEED=0 PIP_CONFIG_FILE=/dev/null PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
export PYTHONDONTWRITEBYTECODE=1 PIP_ROOT_USER_ACTION=ignore

test -x "$environment/bin/python" || python3 -m venv --without-pip "$environment"
pip() { "$environment/bin/python" "$(echo /wheels/pip-*.whl)/pip" "$@"; }
pip install --quiet --no-index --find-links /wheels --no-compile --require-hashes --requirement "/build/$lock"
pip install --quiet --no-index --find-links /wheels --no-compile --no-deps resolute-train
# A fifth of what the large ones install, which nothing imports.
for package in numpy scipy sklearn; do
    find "$environment"/lib/python3*/site-packages/$package -type d -name tests -prune -exec rm -r {} + 2>/dev/null || true
done
# Images have the times of files set to one date: modules that are compiled by a file's time would be compiled at each start.
# PyTorch has a module in the syntax of a newer Python, for its own tests: it stays as it is.
"$environment/bin/python" -m compileall -q -j 1 --invalidation-mode unchecked-hash -x '/py312_[a-z]*\.py$' "$environment/lib"

# What services and trials may write, if nothing else is mounted there.
mkdir -p /build/owned/etc/resolute /build/owned/var/lib/resolute
for folder in authority checkpoints database gateway store; do mkdir "/build/owned/etc/resolute/$folder"; done
for service in experiments searcher metrics logs checkpoints preemption gateway; do
    mkdir "/build/owned/var/lib/resolute/$service"
done
# Others read the two folders that are for their containers.
chmod -R go-rwx /build/owned/var/lib/resolute
