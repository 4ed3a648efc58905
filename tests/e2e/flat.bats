#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A shard's own memory does not grow with the number of steps (NULL_STEPS=10000000) or of
# connections (CONNECTIONS=100000).
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    export OMP_NUM_THREADS=1
    printf '%s\n' 'task ps:0 unix:p0' 'task worker:0 unix:none' >cluster
    tf-graph -D n=1 "$root/tests/bench/dist.lua" | tf-place -c cluster | tf-part >parts.tfg
    tf-ps serve -c cluster --task ps:0 2>ps.err 3>&- &
    shard=$!
    soon 10 grep -q ready ps.err
}

teardown() {
    end_pids "$shard"
}

measure() { # sets anonymous: the shard's, kB
    anonymous=$(awk '/RssAnon/ { print $2 }' "/proc/$shard/status")
}

steps() { # N: null steps
    tf-exec -g parts.tfg -c cluster --task worker:0 --run step --steps "$1"
    measure
}

ask() { # N: as many connections, one after the other
    local k
    for ((k = 0; k < $1; k++)); do tf-ps stats -c cluster --task ps:0 >/dev/null || return 1; done
    measure
}

ask_at_once() { # N
    local k pids=()
    for ((k = 0; k < $1; k++)); do
        tf-ps stats -c cluster --task ps:0 >/dev/null &
        pids+=($!)
    done
    wait_each "${pids[@]}"
    measure
}

@test "null steps leave a shard's anonymous memory as it is" {
    local steps=${NULL_STEPS:-20000} before
    steps $((steps / 4))
    before=$anonymous
    steps "$steps"
    echo "$before kB, after $steps steps $anonymous kB"
    [ "$anonymous" -le $((before + 128)) ]
}

@test "connections leave a shard's anonymous memory as it is" {
    local before
    ask 40 # the first ones fill the allocator's caches
    before=$anonymous
    ask "${CONNECTIONS:-400}"
    echo "$before kB, then $anonymous kB"
    [ "$anonymous" -le $((before + 32)) ]
}

@test "of many connections at once no more memory stays than they had at once" {
    local before
    measure
    before=$anonymous
    for _ in 1 2 3 4; do ask_at_once 40; done
    echo "$before kB, then $anonymous kB"
    [ "$anonymous" -le $((before + 40 * 112)) ] # a link has 64 KiB to read into
}
