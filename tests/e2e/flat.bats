#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A shard's own memory stays what it is, however many steps there are: NULL_STEPS=10000000.
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

steps() { # N: null steps; leaves the shard's anonymous memory in $anonymous, kB
    tf-exec -g parts.tfg -c cluster --task worker:0 --run step --steps "$1"
    anonymous=$(awk '/RssAnon/ { print $2 }' "/proc/$shard/status")
}

@test "null steps leave a shard's anonymous memory as it is" {
    local steps=${NULL_STEPS:-20000} before
    steps $((steps / 4))
    before=$anonymous
    steps "$steps"
    echo "$before kB, after $steps steps $anonymous kB"
    [ "$anonymous" -le $((before + 128)) ]
}
