#!/usr/bin/env bash
# Installs the engines that `make engines` starts for itself, where they are missing, with Debian's packages: Slurm with
# its accounting and a MariaDB, MUNGE, OpenSSH, Podman and what makes its image, Docker with containerd, and where
# RESOLUTE_TEST_KUBE names scripts that start a Kubernetes, kubectl and what its node and its store are made of.
# Wants root, or a sudo that does not ask. Nothing is set up: tests start daemons of their own on loopback.
set -euo pipefail

packages=()
PATH="$PATH:/usr/sbin:/sbin"
command -v slurmctld >/dev/null || packages+=(slurm-wlm)
command -v slurmdbd >/dev/null || packages+=(slurmdbd)
command -v mariadbd >/dev/null || packages+=(mariadb-server)
command -v munged >/dev/null || packages+=(munge)
command -v dockerd >/dev/null || packages+=(docker.io)
command -v sshd >/dev/null || packages+=(openssh-server)
command -v ssh >/dev/null || packages+=(openssh-client)
for program in mmdebstrap buildah podman runc iptables; do
    command -v "$program" >/dev/null || packages+=("$program")
done
for package in netavark aardvark-dns; do
    test -x "/usr/lib/podman/$package" || packages+=("$package")
done
if [[ -n ${RESOLUTE_TEST_KUBE:-} ]]; then
    command -v kubectl >/dev/null || packages+=(kubernetes-client)
    command -v etcd >/dev/null || packages+=(etcd-server)
    command -v containerd >/dev/null || packages+=(containerd)
    [[ -e /usr/lib/cni/bridge || -e /opt/cni/bin/bridge ]] || packages+=(containernetworking-plugins)
fi
((${#packages[@]})) || exit 0

if ! command -v apt-get >/dev/null; then
    echo "install these packages, or what they are called here: ${packages[*]}" >&2
    exit 1
fi
if ((EUID == 0)); then as_root=(env); else as_root=(sudo -n env); fi
echo "installing ${packages[*]}"
"${as_root[@]}" apt-get -o Acquire::Retries=3 update -q
"${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 -o DPkg::Lock::Timeout=600 install -q -y --no-install-recommends "${packages[@]}"
