#!/bin/sh
# Installs the browser in which the page of 'inspect --html' is tested: Debian's
# Chromium, with one font. It needs root; run it again at will.
set -eu
command -v chromium >/dev/null && exit 0
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
chromium --version --no-sandbox
