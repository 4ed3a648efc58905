#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What a step needs first overtakes what left before it (ByteScheduler, Peng et al. 2019; P3,
# Jayarajan et al. 2019): over a slow link between two hosts the gradient of the last layer is on
# its way when that of the first one comes, and is there after it. Network namespaces, which need
# root and tc. A layer between them takes its time by sleeping, as if a device computed it.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools
load ../lib/slow_link
load ../lib/pause

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    slow_link 100
    make_pause
    export OMP_NUM_THREADS=1
    # the last layer's 4 MiB take 0.35 s; the first one's 128 KiB are there 50 ms after them
    cat >m.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 32}}
local h = nn.dense(x, 1024, {name = "first", bias = false})
h = nn.dense(Pause(h, {backward = 0.05}), 1024, {name = "last", bias = false})
entry.train = minimize(Mean(Square(h), {0, 1}), optim.sgd{rate = 0.001})
LUA
    awk 'BEGIN { for (r = 0; r < 12; r++) for (i = 0; i < 32; i++)
        printf "%d%s", (r * i) % 7, i < 31 ? "," : "\n" }' >x.csv
    tf-data csv x.csv x=1-32 --batch 2 >f.rec
}

teardown() {
    kill_pids "${pids[@]}"
    slow_link_close
}

# parts MODE [SED-SCRIPT]: m.tfg for the tasks of c, the graph's text changed so
parts() {
    tf-graph m.lua | tf-opt | tf-replicate --mode "$1" -c c | tf-show --text | sed "${2-}" |
        tf-graph --text | tf-place -c c | tf-part >parts.tfg
}

# unordered MODE: the same, but that nothing is more urgent than something else
unordered() {
    parts "$1" 's/\b_priority=[0-9]*, //; s/, _priority=[0-9]*}/}/'
    [ "$(tf-show --text parts.tfg | grep -c _priority)" = 0 ]
}

# Of each step but the first: which share of the time that the last layer's sum still takes, when
# the first layer's begins, that one takes. The median.
share() {
    step 6 --feed f.rec >seconds
    tf-show --json t0 | jq -s 'map(select(.op == "AllReduce" and .step > 1)) | group_by(.step) |
        map(sort_by(.start) | map(.end = .start + .ns) |
            (.[1].end - .[1].start) / (.[0].end - .[1].start)) | sort | .[length / 2 | floor]'
}

@test "sums: in the trace the first layer's begins behind the last one's, and ends long before" {
    parts allreduce
    share >ordered
    unordered allreduce
    share >as_they_come
    paste ordered as_they_come
    paste ordered as_they_come | awk '{ exit !($1 < 0.5 && $2 > 0.65) }'
}

# train: the shard and the worker of parts.tfg. In `asked` is what the shard said of its pushes,
# again and again: those of the first layer and of the last one that it had.
train() {
    local worker shard
    inside 0 timeout 60 tf-ps serve -c c --task ps:0 --key-file key 2>ps.err 3>&- &
    shard=$!
    pids+=("$shard")
    soon 10 grep -q "ps:0: ready on" ps.err
    inside 1 nice -n -20 tf-exec -c c --task worker:0 -g parts.tfg --key-file key --run train \
        --feed f.rec --trace t0 >out 2>w.err 3>&- &
    worker=$!
    pids+=("$worker")
    while kill -0 "$worker" 2>/dev/null; do
        inside 0 nice -n -20 tf-ps stats --by resource --json -c c --key-file key
    done >told
    jq -r 'select(.name | startswith("aggregator:")) | .items' told | paste -d ' ' - - >asked
    wait "$worker" || { cat w.err; return 1; }
    inside 0 tf-ps stop -c c --key-file key
    wait "$shard"
}

@test "pushes: the shard has the first layer's long before the last one's, which left before" {
    limit 0 eth0 40
    limit 1 eth0 40 # 0.9 s for the last layer
    sed -i 's/worker:0/ps:0/; s/worker:1/worker:0/' c
    parts sync
    train
    sort asked | uniq -c
    # the worker's trace: in each step the last layer's is sent first, and then the first layer's
    tf-show --json t0 | jq -r 'select(.op == "Send") | select(.node | contains("gradient")) |
        [.start, .step, .node] | @tsv' | sort -n | cut -f2- | cut -d/ -f1 >sent
    diff sent <(for i in 1 2 3 4 5 6; do printf '%d\t%s\n' $i last $i first; done)
    [ "$(grep -cx '1 0' asked)" -ge 4 ] # for most of the 0.9 s of each of six steps
    unordered sync
    train
    sort asked | uniq -c
    [ "$(grep -cx '1 0' asked)" -le 1 ]
}
