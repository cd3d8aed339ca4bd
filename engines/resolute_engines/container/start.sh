#!/bin/sh
# Starts a module of Resolute with the Python of an image: start.sh MODULE [ARGUMENT]...
# What it says when the image lacks something is the failure of the run.
here=${0%/*}
python=$(command -v python3 || command -v python) || {
    echo "the image has no Python: a trial wants python3, 3.10 or newer, on its PATH" >&2
    exit 127
}
# One interpreter tells all three: each that is started is a part of the wait for the script.
found=$("$python" -c 'import sys, platform
wanted = ("new" if sys.version_info >= (3, 10) else "old",)
print("%s cp%d%d %s" % (wanted + sys.version_info[:2] + platform.libc_ver()[:1]))') || exit 126
if [ "${found%% *}" = old ]; then
    echo "the image has $("$python" --version 2>&1): a trial wants python3, 3.10 or newer, on its PATH" >&2
    exit 126
fi
found=${found#* }
tag=${found%% *}
if [ "${found#* }" != glibc ]; then
    echo "the image has another C library than glibc, such as musl of Alpine: take an image of Debian, Ubuntu or Fedora" >&2
    exit 126
fi
if [ ! -d "$here/$tag" ]; then
    echo "the image has $("$python" --version), and the engine's runtime has $(cd "$here" && echo cp*): make one for it" >&2
    exit 126
fi
export PYTHONPATH="$here/$tag/start${PYTHONPATH:+:$PYTHONPATH}"
exec "$python" -m "$@"
