#!/bin/sh
# rclone's S3 server with the two keys of VersityGW's file.
set -eu
. /run/store/keys.env
# By a variable, which no list of processes shows; rclone reads it as a line of CSV.
export RCLONE_AUTH_KEY="\"$ROOT_ACCESS_KEY,$ROOT_SECRET_KEY\""
exec rclone serve s3 --config /dev/null --addr :9000 --vfs-cache-mode off /data
