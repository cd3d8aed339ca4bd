#!/bin/sh
# PostgreSQL with the variables of its official image: POSTGRES_USER, POSTGRES_DB and POSTGRES_PASSWORD_FILE.
set -eu
data=/var/lib/postgresql/data
as_postgres() { exec setpriv --reuid=postgres --regid=postgres --init-groups "$@"; }

install -d -o postgres -g postgres -m 700 "$data"
install -d -o postgres -g postgres /run/postgresql
if ! [ -s "$data/PG_VERSION" ]; then
    # Of a database that ends with the demonstration nothing need survive a loss of power.
    (as_postgres initdb --no-sync --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" \
        --auth-local=trust --auth-host=scram-sha-256 --pgdata="$data")
    echo 'host all all all scram-sha-256' >> "$data/pg_hba.conf"
    echo "CREATE DATABASE \"$POSTGRES_DB\"" | (as_postgres postgres --single -D "$data" postgres)
fi
as_postgres postgres -D "$data" -c listen_addresses='*'
