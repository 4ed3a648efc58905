#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What a job takes of memory for a large variable: on a shard it is there once, for all who read it.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    export TF_CLUSTER=c OMP_NUM_THREADS=1
    printf 'task ps:0 unix:p0\ntask worker:0 unix:w0\ntask worker:1 unix:w1\n' >c
    cat >net.lua <<'LUA'
local x = variable{name = "x", shape = {4, 2048}, init = init.normal{stddev = 1}, trainable = false}
loss = nn.cross_entropy(nn.dense(x, 4096, {name = "fc"}), Cast({1, 2, 3, 4}, {DstT = int32}))
entry.train = minimize(loss, optim.sgd{rate = 1e-4})
LUA
}

teardown() {
    end_pids "$shard"
}

of_shard() { # FIELD of its status: MiB
    awk -v field="$1:" '$1 == field { print int($2 / 1024) }' "/proc/$shard/status"
}

train() { # STEPS: two workers
    local w workers=()
    for w in 0 1; do
        timeout 60 tf-exec -g parts.tfg --task "worker:$w" --run train --steps "$1" --threads 1 \
            2>"w$w.err" 3>&- &
        workers+=($!)
    done
    wait "${workers[0]}"
    wait "${workers[1]}"
}

@test "a shard has a variable of 32 MiB once, in memory that workers map" {
    local before
    tf-graph net.lua | tf-opt | tf-replicate --mode sync | tf-place -c c | tf-part >parts.tfg
    tf-ps serve --task ps:0 --threads 1 2>ps.err 3>&- &
    shard=$!
    soon 10 grep -q ready ps.err
    before=$(of_shard RssAnon)
    train 8
    echo "anonymous $before MiB, then $(of_shard RssAnon); shared $(of_shard RssShmem)"
    # the sum of two gradients, and no variable, copy of one, or arena of its initialization
    [ "$(of_shard RssAnon)" -lt $((before + 48)) ]
    [ "$(of_shard RssShmem)" -ge 32 ]
}
