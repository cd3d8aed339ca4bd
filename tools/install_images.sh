#!/usr/bin/env bash
# Installs what builds and runs the container images, where it is missing, with Debian's packages: mmdebstrap, buildah and
# Podman. Wants root, or a sudo that does not ask. Nothing is set up.
set -euo pipefail

packages=()
PATH="$PATH:/usr/sbin:/sbin"
for program in mmdebstrap buildah podman runc iptables; do
    command -v "$program" >/dev/null || packages+=("$program")
done
for package in netavark aardvark-dns; do
    test -x "/usr/lib/podman/$package" || packages+=("$package")
done
((${#packages[@]})) || exit 0

if ! command -v apt-get >/dev/null; then
    echo "install these packages, or what they are called here: ${packages[*]}" >&2
    exit 1
fi
if ((EUID == 0)); then as_root=(env); else as_root=(sudo -n env); fi
echo "installing ${packages[*]}"
"${as_root[@]}" apt-get -o Acquire::Retries=3 update -q
"${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 -o DPkg::Lock::Timeout=600 install -q -y --no-install-recommends "${packages[@]}"
