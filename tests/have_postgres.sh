#!/bin/sh
# The tests of what is kept in a database run over SQLite and over a PostgreSQL server of their own.
# Where it can't be had that is said, and its tests are skipped; where they have to run (CI=1) they fail.
set -eu

have() {
    command -v postgres >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1
}

have || {
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        apt-get update -q
        # RUNLEVEL: the package would otherwise start a server for the whole machine.
        RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -q --no-install-recommends postgresql
    else
        echo "The tests of the database need PostgreSQL. On Debian: apt-get install postgresql" >&2
    fi
}
