#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Of which layers factors are sent, and of which gradients (Zhang et al., Poseidon, USENIX ATC 2017:
# HybComm): for batches, workers and shards the choice is the cheaper of both, in bytes that links
# count. What has at most 64 KiB goes whole to each other worker.
# shellcheck disable=SC2034  # pids is of lib/shards
load ../lib/tools
load ../lib/shards
load ../lib/bytes

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    export OMP_NUM_THREADS=1
}

teardown() {
    kill_pids "${pids[@]}"
}

@test "what is taken of each layer sends the fewer bytes, as both were measured" {
    local batch workers shards
    while read -r batch workers shards; do
        echo "batches of $batch, $workers workers, $shards shards"
        cheaper "$batch" "$workers" "$shards" 256,256 300,80 16,2000 300,40
    done <<'END'
8 1 2
24 2 1
24 3 2
100 2 2
8 3 0
60 3 0
24 4 0
END
}
