#!/bin/sh
# The tests of what keeps answers run over SQLite and over a Redis server of their own.
# Where it can't be had that is said, and its tests are skipped; where they have to run (CI=1) they fail.
set -eu

have() {
    command -v redis-server >/dev/null 2>&1 || command -v valkey-server >/dev/null 2>&1
}

have || {
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        apt-get update -q
        # RUNLEVEL: the package would otherwise start a server for the whole machine.
        RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -q --no-install-recommends redis-server
    else
        echo "The tests of the answer cache need Redis. On Debian: apt-get install redis-server" >&2
    fi
}
