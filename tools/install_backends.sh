#!/usr/bin/env bash
# Installs what tests need beside Python, where it is missing, with Debian's packages: PostgreSQL, npm for Azurite and
# the page, Chromium for the page, a compiler and CMake for Horovod, `ip` for networks of their own. Wants root, or a
# sudo that does not ask. Debian 12 has Node 18, and the page wants 20.19: install that first, from wherever you have it.
# An older one is told of; where $CI is set it fails.
set -euo pipefail

packages=()
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || packages+=(postgresql)
command -v npm >/dev/null || packages+=(nodejs npm)
command -v chromium >/dev/null || packages+=(chromium)
command -v c++ >/dev/null || packages+=(g++)
command -v cmake >/dev/null || packages+=(cmake)
command -v make >/dev/null || packages+=(make)
PATH="$PATH:/usr/sbin:/sbin" command -v ip >/dev/null || packages+=(iproute2)
command -v unshare >/dev/null || packages+=(util-linux)

check_node() {
    node --eval 'const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major * 100 + minor < 2019 ? 1 : 0)' &&
        return
    echo "Node $(node --version) is too old for the page: install Node 20.19 or newer, from nodejs.org or a package of it" >&2
    [[ -z ${CI:-} ]]
}

if ! ((${#packages[@]})); then
    check_node
    exit
fi

if ! command -v apt-get >/dev/null; then
    echo "install these packages, or what they are called here: ${packages[*]}" >&2
    exit 1
fi
if ((EUID == 0)); then as_root=(env); else as_root=(sudo -n env); fi
echo "installing ${packages[*]}"
# Tests start servers of their own, so that none has to be set up by the package.
settings=/etc/postgresql-common/createcluster.conf
[[ -e $settings ]] || "${as_root[@]}" install -D -m 644 /dev/stdin "$settings" <<<'create_main_cluster = false'
"${as_root[@]}" apt-get -o Acquire::Retries=3 update -q
"${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 -o DPkg::Lock::Timeout=600 install -q -y --no-install-recommends "${packages[@]}"
check_node
