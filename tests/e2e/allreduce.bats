#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Workers that all-reduce their gradients, without shards. Unix sockets in the test's own folder.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    export TF_CLUSTER=c OMP_NUM_THREADS=1
}

teardown() {
    kill_pids "${pids[@]}"
}

cluster() { # WORKERS
    local i
    for ((i = 0; i < $1; i++)); do echo "task worker:$i unix:w$i"; done >c
}

parts() { # SCRIPT OPTION...: the script's graph for the cluster
    local script=$1
    shift
    tf-graph "$@" "$script" | tf-opt | tf-replicate --mode "${mode:-allreduce}" |
        tf-place -c c | tf-part >parts.tfg
}

feed() { # OPTION...
    (cd "$root/examples" && exec ./feed "$@")
}

# start N OPTION...: worker N; its output is in wN.rec and wN.err, its pid in worker[N]
declare -ga worker
start() {
    local n=$1
    shift
    tf-exec --task "worker:$n" -g parts.tfg --run train --fetch loss "$@" \
        >"w$n.rec" 2>"w$n.err" 3>&- &
    worker[n]=$!
    pids+=($!)
}

# finish N: waits for worker N; its exit code is in `status`
finish() {
    status=0
    wait "${worker[$1]}" || status=$?
}

all_good() { # N
    local i
    for ((i = 0; i < $1; i++)); do
        finish $i
        ((status == 0)) || { cat "w$i.err"; return 1; }
        tf-show --json "w$i.rec" >"w$i.txt"
    done
}

# close FILE FILE STEPS: compares the numbers of two files, to 1e-6 in the first step and to 1e-4 in
# all
close() {
    paste "$1" "$2" | sed -n "1,$3p" | awk -v n="$3" '
        { d = ($1 - $2) / $2; if (d < 0) d = -d
          if (d > (NR == 1 ? 1e-6 : 1e-4)) bad = bad " " NR ":" d }
        END { if (NR != n || bad) { print NR " steps; beyond:" bad; exit 1 } }'
}

@test "two workers with half of each batch: the losses are PyTorch's, and one process', to 1e-4" {
    cluster 2
    # whole batches only, so that both halves have the same weight
    feed --rows 1-1408 --batch 64 --epochs 5 --steps 100 >f.rec
    for optimizer in sgd momentum adam; do
        tf-graph -D "optimizer=$optimizer" "$root/tests/e2e/perceptron.lua" | tf-opt |
            TF_CLUSTER='' tf-place | tf-exec --run train --fetch loss --feed f.rec |
            tf-show --json | jq .loss >one
        parts "$root/tests/e2e/perceptron.lua" -D "optimizer=$optimizer"
        for i in 0 1; do
            feed --rows 1-1408 --batch 32 --shard $i/2 --epochs 5 --steps 100 >f$i.rec
            start $i --feed f$i.rec
        done
        all_good 2
        paste <(jq .loss w0.txt) <(jq .loss w1.txt) |
            awk '{ printf "%.9g\n", ($1 + $2) / 2 }' >both
        close both one 100
        close both "$root/tests/data/perceptron/$optimizer.txt" 22 # the first epoch
    done
}

@test "3 workers that have the same data train as one, and the first one saves" {
    cluster 3
    feed --rows 1-1437 --shuffle --batch 64 --epochs 3 --steps 60 >f.rec
    tf-graph "$root/examples/digits.lua" | tf-opt | TF_CLUSTER='' tf-place |
        tf-exec --run train --fetch loss --feed f.rec --save one.ckpt | tf-show --json >one.txt
    parts "$root/examples/digits.lua"
    for i in 2 0 1; do start $i --feed f.rec --save $i.ckpt; done
    all_good 3
    cmp w0.txt w1.txt
    cmp w0.txt w2.txt
    [ ! -e 1.ckpt ] # the first one writes
    # the mean of three equal numbers may differ from the number
    paste <(jq .loss one.txt) <(jq .loss w0.txt) |
        awk '{ d = ($1 - $2) / $1; if (d > 1e-4 || d < -1e-4) bad = 1 }
             END { exit bad || NR != 60 }'
    [ "$(tf-show one.ckpt | cut -d" " -f1 | sort)" = "$(tf-show 0.ckpt | cut -d" " -f1 | sort)" ]
}

@test "what was saved is given to all workers by the first; another start gives the same bits" {
    cluster 2
    parts "$root/examples/digits.lua"
    feed --rows 1-1437 --shuffle --batch 64 --steps 10 >f.rec
    for i in 0 1; do start $i --feed f.rec --save a.ckpt; done
    all_good 2
    for round in 1 2; do
        start 0 --feed f.rec --restore a.ckpt --save $round.ckpt
        start 1 --feed f.rec
        all_good 2
        cmp w0.txt w1.txt
        tf-show --json $round.ckpt >$round.vars
    done
    cmp 1.vars 2.vars
}

@test "a worker whose data ends leaves; the other goes on alone" {
    cluster 2
    parts "$root/examples/digits.lua"
    feed --rows 1-1437 --batch 64 --steps 5 >short.rec
    feed --rows 1-1437 --batch 64 --steps 20 >long.rec
    start 0 --feed short.rec
    start 1 --feed long.rec
    all_good 2
    [ "$(wc -l <w0.txt) $(wc -l <w1.txt)" = "5 20" ]
}

@test "workers that do not agree are told so, all of them" {
    cluster 2
    parts "$root/examples/digits.lua"
    feed --rows 1-1437 --batch 64 --steps 3 >f.rec
    start 0 --feed f.rec --seed 1
    start 1 --feed f.rec --seed 2
    for i in 0 1; do
        finish $i
        [ "$status" -eq 78 ]
        grep -q "^tf-exec: worker:$i: .*worker 1 has --seed 2, worker 0 --seed 1" w$i.err
    done
}

@test "a worker that does not come is named" {
    cluster 3
    parts "$root/examples/digits.lua"
    feed --rows 1-1437 --batch 64 --steps 3 >f.rec
    start 1 --feed f.rec --timeout 1s
    finish 1
    [ "$status" -eq 69 ]
    grep -qE '^tf-exec: worker:1: worker:[02] (did not come in|at unix:w2: no such)' w1.err
}

# endless N OPTION...: starts N workers that train until one is stopped; returns once all have done
# a step
endless() {
    local i k
    cluster "$1"
    parts "$root/examples/digits.lua" "${@:2}"
    feed --rows 1-1437 --shuffle --batch 64 --epochs 400 >f.rec 2>/dev/null
    for ((i = 0; i < $1; i++)); do start $i --feed f.rec; done
    for ((i = 0; i < $1; i++)); do
        for ((k = 0; k < 400; k++)); do
            [ ! -s w$i.rec ] || break
            sleep 0.05
        done
        [ -s w$i.rec ]
    done
}

@test "kill -9 of a worker: the others say who and for what, at once, and exit 69" {
    endless 3
    kill -9 "${worker[1]}"
    before=$(date +%s%N)
    for i in 0 2; do
        finish $i
        [ "$status" -eq 69 ]
        cat w$i.err
        grep -qE "^tf-exec: worker:$i: step [0-9]+: .*worker:1 at unix:w[12], incarnation" w$i.err
        grep -q "waiting for 'allreduce/gradients" w$i.err
    done
    took=$((($(date +%s%N) - before) / 1000000))
    echo "$took ms"
    ((took < 2500)) # 0.2 s on a machine that has nothing else to do; the lease is 3 s
}

@test "kill -9 of a worker whose gradients the others read where they are: as well" {
    places_on_cpus "of the host's memory"
    endless 3 -D units=8192
    readlink /proc/"${worker[1]}"/fd/* | finds tf-tensor
    kill -9 "${worker[0]}"
    for i in 1 2; do
        finish $i
        cat w$i.err
        [ "$status" -eq 69 ]
        grep -qE "^tf-exec: worker:$i: step [0-9]+: .*worker:0 at unix:w[012], incarnation" w$i.err
    done
}

@test "a worker that is frozen: the others end within the lease" {
    endless 2
    kill -STOP "${worker[1]}"
    before=$(date +%s%N)
    finish 0
    took=$((($(date +%s%N) - before) / 1000000))
    kill -CONT "${worker[1]}"
    [ "$status" -eq 69 ]
    grep -q "worker:1 at unix:w1.*silent" w0.err
    echo "$took ms"
    ((took < 6000))
    finish 1
    [ "$status" -eq 69 ]
}

# Gradients of the upper layers leave while those of the lower layers are computed.
@test "gradients leave while lower layers are computed" {
    cluster 2
    parts "$root/tests/bench/train.lua" -D model=lenet -D batch=8
    start 0 --steps 3 --threads 1 --trace trace
    start 1 --steps 3 --threads 1
    finish 0
    finish 1
    tf-show --json trace | jq -se '
        map(select(.step == 3)) |
        (map(select(.op == "AllReduce").start) | min) <
        (map(select(.op == "Conv2DBackpropFilter").start) | max)'
}

@test "workers that send factors: the same bits on all, gradients of sums to 1e-5" {
    cluster 3
    local how
    for how in sgd "momentum -D clip=0.5" adam; do
        for mode in allreduce "allreduce,factors=all"; do
            # shellcheck disable=SC2086  # options
            parts "$root/tests/e2e/perceptron.lua" -D optimizer=$how
            for i in 0 1 2; do
                # 7, 5 and 3 rows: the mean of the workers' means, whatever their numbers of rows
                feed --rows 1-1408 --batch $((7 - 2 * i)) --shard $i/3 --steps 40 >f$i.rec
                start $i --feed f$i.rec --fetch hidden/W,output/W --save "$mode.ckpt"
            done
            all_good 3
            for i in 0 1 2; do jq -c '[.["hidden/W"], .["output/W"]]' w$i.txt >v$i.txt; done
            cmp v0.txt v1.txt
            cmp v0.txt v2.txt
        done
        tf-ckpt diff allreduce.ckpt "allreduce,factors=all.ckpt" >differences || [ $? -eq 1 ]
        awk '$2 > 1e-5 { print; bad = 1 } END { exit bad || NR < 4 }' differences
    done
}
