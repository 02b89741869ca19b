#!/bin/sh
# Installs what the fault tests need from Debian. FUSE needs no package: the
# tests mount /dev/fuse themselves.
set -eu

if [ "$(id -u)" != 0 ]; then
	echo "install.sh: only root may install packages" >&2
	exit 1
fi

packages="e2fsprogs xfsprogs btrfs-progs qemu-user-static wine64"
missing=""
for p in $packages; do
	if ! dpkg-query -W -f '${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed; then
		missing="$missing $p"
	fi
done
if [ -n "$missing" ]; then
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq
	# shellcheck disable=SC2086 # a list of names
	apt-get install -y -qq --no-install-recommends $missing
fi
echo "install.sh: $packages"
