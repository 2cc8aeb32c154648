#!/bin/sh
# The browser tests drive Debian's Chromium; Chinese screenshots need a font that has the characters.
set -eu

have() { command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1; }

if have && fc-list :lang=zh 2>/dev/null | grep -q .; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
        chromium fonts-noto-cjk fonts-noto-color-emoji fontconfig
elif ! have; then
    echo "The browser tests need Chromium. On Debian: apt-get install chromium fonts-noto-cjk" >&2
    exit 1
fi
