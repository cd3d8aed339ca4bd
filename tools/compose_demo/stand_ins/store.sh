#!/bin/sh
# rclone's S3 server with the two keys of VersityGW's file.
set -eu
. /run/store/keys.env
# The checkpoints service would make the bucket, but rclone says that one is missing in a type which its client does not read.
mkdir -p /data/checkpoints
# By a variable, which no list of processes shows; rclone reads it as a line of CSV.
export RCLONE_AUTH_KEY="\"$ROOT_ACCESS_KEY,$ROOT_SECRET_KEY\""
exec rclone serve s3 --config /dev/null --addr :9000 --vfs-cache-mode off /data
