#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Null steps of one worker and one shard, beside raw round trips of the same sockets. With a PYTHON
# that has torch, beside its RPC. usage: dist.sh [SECONDS per figure]
set -euo pipefail
root=$PWD
seconds=${1:-2}
work=$(mktemp -d)
PATH=$root/build/bin:$PATH
dist=$root/build/tests/bench/dist
shard=
finish() {
    [[ -z $shard ]] || kill "$shard" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
cd "$work"
export OMP_NUM_THREADS=1 TF_NO_KEY=1

start() {
    tf-ps serve -c c --task ps:0 --threads 1 2>err &
    shard=$!
    until grep -q ready err; do sleep 0.02; done
}

step() { # NAME [-D ...]
    local name=$1
    shift
    tf-graph "$@" "$root/tests/bench/dist.lua" | tf-place -c c | tf-part >parts.tfg
    start
    read -r median p10 p90 < <("$dist" -g parts.tfg -c c step "$seconds")
    kill "$shard"
    wait "$shard" || true
    printf '%-6s %-14s %10s %10s %10s %8.2f\n' "$link" "$name" "$median" "$p10" "$p90" \
        "$(bc -l <<<"$median / $floor")"
}

printf '%-6s %-14s %10s %10s %10s %8s\n' LINK STEP 'MEDIAN us' P10 P90 'ROUND TRIPS'
for link in unix tcp; do
    address=unix:p0
    [[ $link == unix ]] || address=127.0.0.1:$((20000 + RANDOM % 20000))
    printf 'task ps:0 %s\ntask worker:0 unix:none\n' "$address" >c
    read -r floor p10 p90 < <("$dist" --floor "$link" "$seconds")
    printf '%-6s %-14s %10s %10s %10s\n' "$link" 'raw round trip' "$floor" "$p10" "$p90"
    step scalar -D n=1
    step '1 MB' -D n=250000
    step '100 MB' -D n=25000000
    step '32 of 64 MB' -D n=1024 -D rows=16384
done
