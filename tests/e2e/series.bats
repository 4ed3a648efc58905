#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Workers push numbers, and read exactly the sum of a series: through shards, among themselves, each
# on its own, and in 1 and 2 bits with thresholds.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools
load ../lib/shards

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    export OMP_NUM_THREADS=1
    cat >m.lua <<'LUA'
w = variable{name = "w", shape = {1024}, init = 0}
local x = Placeholder{dtype = float32, shape = {-1, 1024}, name = "x"}
entry.train = minimize(Sum(w * x, {0, 1}), optim.sgd{rate = 1})
LUA
    tf-graph m.lua | tf-opt >m.tfg
}

teardown() {
    kill_pids "${pids[@]}"
}

# rounds N KIND MODE: wK.txt has the values that worker K read in each of 20 rounds
rounds() {
    local n=$1 i each=()
    printf 'task ps:%d unix:p%d\n' 0 0 1 1 >c
    for ((i = 0; i < n; i++)); do
        echo "task worker:$i unix:w$i" >>c
        /usr/bin/python3 "$root/tests/e2e/series.py" feed "$n" 20 "$i" "$2" |
            tf-data csv - x=1-1024 --header no -q >"f$i.rec"
    done
    tf-replicate --mode "$3" -c c m.tfg | tf-place -c c | tf-part >p.tfg
    rm -f w?.txt
    serve ps:0
    serve ps:1
    for ((i = 0; i < n; i++)); do
        work "$i" --run train --fetch w --feed "f$i.rec" >"w$i.rec" 2>"w$i.err" 3>&- &
        each+=($!)
    done
    for ((i = 0; i < n; i++)); do
        wait "${each[i]}" || { cat "w$i.err"; return 1; }
        tf-show --json "w$i.rec" >"w$i.txt"
    done
}

read_as() { # KIND N FETCHED...
    /usr/bin/python3 "$root/tests/e2e/series.py" read "$1" "$2" 20 "${@:3}"
}

@test "in rounds every worker reads the sum of what all have pushed before" {
    local n kind mode
    for n in 2 3; do
        while read -r kind mode; do
            rounds $n "$kind" "$mode"
            read_as "$kind" $n w?.txt
            stop
        done <<'END'
mean sync
mean allreduce
sum ssp,bound=0
END
    done
}

@test "each on its own: when all have ended the sum is the same" {
    rounds 3 last async
    tf-ps save end/ -c c
    tf-ckpt cat end w | tf-show --json >end.txt
    read_as last 3 end.txt
    stop
}

@test "in 2 bits and in 1: what crosses is what a scalar model says, number by number" {
    local n
    for n in 2 4; do
        rounds $n bits2:1/2 allreduce,bits=2,threshold=0.5
        read_as bits2:1/2 $n w?.txt
        stop
        rounds $n bits1:0 allreduce,bits=1,threshold=0
        read_as bits1:0 $n w?.txt
        stop
    done
}
