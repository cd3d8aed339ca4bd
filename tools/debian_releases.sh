#!/usr/bin/env bash
# Runs a target of make with the Python of each release of Debian, in a chroot that mmdebstrap makes and that stays for
# the next time: tools/debian_releases.sh TARGET [RELEASE...]. Wants root; what is committed is what runs.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$1
shift
releases=("$@")
((${#releases[@]})) || releases=(bookworm trixie testing)
((EUID == 0)) || { echo 'a chroot wants root: run this as root' >&2; exit 1; }
command -v mmdebstrap >/dev/null || { echo 'mmdebstrap is not here: tools/install_images.sh installs it' >&2; exit 1; }

failed=()
for release in "${releases[@]}"; do
    root=$PWD/.cache/debian/$release
    if [[ ! -x $root/usr/bin/make ]]; then
        rm -rf "$root"
        mkdir -p "$root"
        # A mirror may be some weeks old; what it has is signed all the same.
        mmdebstrap --quiet --variant=apt --aptopt='Acquire::Check-Valid-Until "false"' \
            --include=ca-certificates,git,make,procps,python3,python3-venv "$release" "$root"
    fi
    cp /etc/resolv.conf /etc/hosts "$root/etc/"
    # Authorities that this machine has besides Debian's, such as that of a proxy in front of indexes of packages.
    cp -r /usr/local/share/ca-certificates "$root/usr/local/share/"
    chroot "$root" update-ca-certificates >/dev/null 2>&1
    rm -rf "$root/resolute"
    git clone --quiet --no-hardlinks . "$root/resolute"
    echo "$release: $(chroot "$root" python3 --version), make $target"
    # A namespace of its own for mounts and processes: nothing of it is left, however it ends.
    unshare --mount --pid --fork --kill-child -- bash -euc '
        mount -t proc proc "$1/proc"; mount --rbind /dev "$1/dev"; mount -t tmpfs tmpfs "$1/tmp"
        exec chroot "$1" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 make -C /resolute "$2"
    ' "$root" "$root" "$target" || failed+=("$release")
done
((${#failed[@]} == 0)) || { echo "failed: make $target on ${failed[*]}" >&2; exit 1; }
