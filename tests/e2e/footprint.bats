#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The memory of a job: a shard has a large variable once, for all its readers; and a worker that
# all-reduces its gradients takes hardly more than the same step alone.
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
    end_pids "$shard" "${measured[@]}"
    wait || true # until then they write to the folder
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
    # the sum of two gradients, but no variable, copy of one, or arena of its initialization
    [ "$(of_shard RssAnon)" -lt $((before + 48)) ]
    [ "$(of_shard RssShmem)" -ge 32 ]
}

# KiB of a process without files, which other processes map as well; memory that two of them share
# counts half for each.
kib_of() { # PID
    awk '/^Pss_(Anon|Shmem):/ { n += $2 } END { print n }' "/proc/$1/smaps_rollup"
}

has_begun() { # PID: all that a step makes has been there
    [ "$(kib_of "$1")" -gt 20000 ]
}

weigh() { # PID: KiB at the most, in ten looks during steps
    local most=0 now
    for _ in {1..10}; do
        sleep 0.2
        now=$(kib_of "$1")
        most=$((now > most ? now : most))
    done
    echo "$most"
}

# compare MORE: a worker of two takes at most MORE % more than the same step of net.tfg alone
compare() {
    local w alone together
    printf 'task worker:0 unix:w0\ntask worker:1 unix:w1\n' >c
    tf-replicate --mode allreduce net.tfg | tf-place -c c | tf-part >parts.tfg
    tf-exec -g net.tfg --run train --steps 100000 --threads 1 --without all >out 2>err 3>&- &
    measured=($!)
    soon 30 has_begun "${measured[0]}"
    alone=$(weigh "${measured[0]}")
    end_pids "${measured[@]}"
    measured=()
    for w in 0 1; do
        tf-exec -g parts.tfg --task "worker:$w" --run train --steps 100000 --threads 1 \
            --without all >out 2>"w$w.err" 3>&- &
        measured+=($!)
    done
    soon 30 has_begun "${measured[0]}"
    together=$(weigh "${measured[0]}")
    echo "alone $alone KiB, a worker $together KiB"
    [ "$((together * 100))" -le "$((alone * (100 + $1)))" ]
}

@test "a worker of two has at most 15% more memory than the step alone" {
    tf-graph -D model=lenet -D batch=32 "$root/tests/bench/train.lua" | tf-opt | tf-place >net.tfg
    compare 15
}

@test "with a gradient of 64 MiB, which is in pieces, it has no more" {
    sed 's/2048/4096/' net.lua >large.lua
    tf-graph large.lua | tf-opt | tf-place >net.tfg
    compare 0
}
