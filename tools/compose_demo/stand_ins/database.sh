#!/bin/sh
# PostgreSQL with the variables of its official image: POSTGRES_USER, POSTGRES_DB, POSTGRES_PASSWORD_FILE and
# POSTGRES_INITDB_ARGS. Its socket lies in /run/postgresql, as the image's.
set -eu
data=/var/lib/postgresql/data
as_nobody_special() { exec setpriv --reuid=resolute --regid=resolute --init-groups "$@"; }

install -d -o resolute -g resolute -m 700 "$data"
install -d -o resolute -g resolute -m 755 /run/postgresql
if ! [ -s "$data/PG_VERSION" ]; then
    # Of a database that ends with the demonstration nothing need survive a loss of power.
    (as_nobody_special initdb --no-sync --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" \
        $POSTGRES_INITDB_ARGS --pgdata="$data")
    echo "CREATE DATABASE \"$POSTGRES_DB\"" | (as_nobody_special postgres --single -F -D "$data" postgres)
fi
as_nobody_special postgres -F -D "$data" -c listen_addresses= -c unix_socket_directories=/run/postgresql
