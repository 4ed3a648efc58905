#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Workers that are killed in the middle of training, in processes of their own.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    export TF_CLUSTER=c OMP_NUM_THREADS=1
    printf 'task ps:0 unix:p0\ntask ps:1 unix:p1\ntask worker:0 unix:w0\ntask worker:1 unix:w1\n' >c
    for w in 0 1; do
        (cd "$root/examples" &&
            ./feed --rows 1-1437 --shuffle --batch 32 --epochs 60 --shard $w/2) >f$w.rec
    done
}

teardown() {
    kill_pids "${pids[@]}"
}

serve() {
    local i
    for i in 0 1; do
        tf-ps serve --task ps:$i 2>p$i.err 3>&- &
        pids+=($!)
    done
}

work() { # N: in the background, with its fetches to wN.rec
    timeout -s KILL 60 tf-exec -g parts.tfg --task "worker:$1" --run train --fetch loss \
        --feed "f$1.rec" -o "w$1.rec" 2>>"w$1.err" 3>&- &
    worker=$!
    pids+=($!)
}

pushes() { # of worker 1
    tf-ps stats --by worker 2>/dev/null | awk '$1 == "worker:1" { n = $5 } END { print n + 0 }'
}

train() { # MODE KILLS
    local k i first before code killed=0
    tf-graph "$root/examples/digits.lua" | tf-opt | tf-replicate --mode "$1" |
        tf-place -c c | tf-part >parts.tfg
    serve
    work 0
    first=$worker
    for ((k = 0; k < $2; k++)); do
        before=$(pushes)
        work 1
        for ((i = 0; i < 400 && $(pushes) <= before; i++)); do
            kill -0 "$worker" # it is not over yet
            sleep 0.05
        done
        pkill -9 -P "$worker" || true # timeout's child, unless it is over by now
        code=0
        wait "$worker" || code=$?
        [ "$code" -eq 137 ] || [ "$code" -eq 0 ]
        killed=$((killed + (code == 137)))
    done
    [ "$killed" -gt 0 ] || [ "$2" -eq 0 ]
    work 1
    wait "$worker"
    wait "$first"
    tf-ps stats --by resource >resources
    for i in 0 1; do kill "${pids[$i]}"; done
    wait
    pids=()
}

@test "kill -9 of a worker, three times: synchronous training ends with the same bits" {
    train sync 0
    tf-show w0.rec >undisturbed
    [ "$(wc -l <undisturbed)" = 1380 ]
    grep -qE '^ps:0 +default +clock:train +0 +0 B +sync version 1380, 2 workers, 2 left$' resources
    grep -qE '^ps:[01] +default +aggregator:output/W +0 +0 B +0 pushes, 0 bytes$' resources
    train sync 3
    tf-show w0.rec | cmp undisturbed
    grep -q 'joined again' w1.err
}

@test "kill -9 of a worker that pushes factors: the same bits" {
    train sync,factors=all 0
    tf-show w0.rec >undisturbed
    train sync,factors=all 1
    tf-show w0.rec | cmp undisturbed
    grep -q 'joined again' w1.err
}

@test "kill -9 of a worker: asynchronous training goes on, and ends" {
    train async 2
    [ "$(tf-show w0.rec | wc -l)" = 1380 ]
}
