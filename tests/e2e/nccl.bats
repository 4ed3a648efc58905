#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Workers whose gradients a fake NCCL adds (tests/lib/fake_cuda_nccl.c): it adds from the last
# worker to the first, so that bits tell which library made a sum.
# shellcheck disable=SC2030,SC2031,SC2154  # variables of run and setup
load ../lib/tools
load ../lib/workers

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    export TF_CLUSTER=c OMP_NUM_THREADS=1 TMPDIR=$BATS_TEST_TMPDIR
    export TF_DEVICE_PATH=$root/${BUILD:-build}/tests/lib
}

teardown() {
    kill_pids "${pids[@]}"
}

# parts WORKERS SCHEDULE [DEVICE]: makes digits for them, on GPUs
parts() {
    local i
    for ((i = 0; i < $1; i++)); do echo "task worker:$i unix:w$i device=${3:-GPU:0}"; done >c
    tf-graph "$root/examples/digits.lua" | tf-opt |
        tf-replicate --mode "allreduce,schedule=$2" -c c | tf-place -c c | tf-part >parts.tfg
}

feed() { # OPTION...
    (cd "$root/examples" && exec ./feed --rows 1-1437 --shuffle --batch 8 "$@")
}

# trains WORKERS NAME: writes the losses of all to NAME.losses, variables to NAME.variables
trains() {
    local i
    for ((i = 0; i < $1; i++)); do
        feed --steps 12 --shard "$i/$1" >"f$i.rec"
        declare -g "FEED$i=--feed f$i.rec"
    done
    among "$1" --run train --fetch loss --save "$2.ckpt" || return 1
    cat w?.txt >"$2.losses"
    tf-show --json "$2.ckpt" | sort >"$2.variables"
    [ "$(wc -l <"$2.losses")" -eq $(($1 * 12)) ]
    [ -z "$(find . -name 'tf-nccl.*')" ]
}

near() { # NAME NAME: to 1e-4
    paste -d' ' <(jq .loss "$1.losses") <(jq .loss "$2.losses") |
        awk '{off = ($1 - $2) / $2; if (off * off > 1e-8) {print; exit 1}} END {exit NR < 24}'
}

same() { # NAME NAME
    cmp "$1.losses" "$2.losses" && cmp "$1.variables" "$2.variables"
}

@test "three workers train by it: other bits than by rank, the same in each run, near the CPU's" {
    parts 3 nccl
    tf-show --text parts.tfg | finds 'AllReduce(.*schedule="nccl"'
    trains 3 first
    trains 3 second
    same first second
    parts 3 direct
    trains 3 direct
    run cmp first.variables direct.variables
    [ "$status" -eq 1 ]
    near first direct
    parts 3 direct CPU:0
    trains 3 cpu
    near first cpu
}

# sum TYPE REDUCTION VALUE...: the reduction of the workers' values, as all get it
sum() {
    local i n=$(($# - 2)) type=$1 reduction=$2 on='@?/job:worker/task:*/device:GPU:0'
    shift 2
    for ((i = 0; i < n; i++)); do echo "task worker:$i unix:w$i device=GPU:0"; done >c
    printf '%s\n' "x = Placeholder() {dtype=$type, shape=[2]} $on" \
        "y = AllReduce(x) {T=[$type], reductions=[\"$reduction\"], schedule=\"nccl\"} $on" |
        tf-graph --text | tf-place -c c | tf-part >parts.tfg
    for ((i = 0; i < n; i++)); do declare -g "FEED$i=--feed x=[$1,0]" && shift; done
    among "$n" --fetch y
    for ((i = 1; i < n; i++)); do cmp w0.txt "w$i.txt"; done
    jq -c .y w0.txt
}

# By rank the first sum would be 0, as 1 is lost in 1e8.
@test "sums and means are the library's, and those that it has none for are not" {
    [ "$(sum float32 sum 1 1e8 -1e8)" = '[1,0]' ]
    [ "$(sum float64 sum 1 1e17 -1e17)" = '[1,0]' ]
    [ "$(sum float32 mean 1 2 6)" = '[3,0]' ]
    [ "$(sum int32 sum 1 -2 2147483647)" = '[2147483646,0]' ]
    [ "$(sum int64 sum 9007199254740993 1)" = '[9007199254740994,0]' ]
    [ "$(sum float32 first 5 6 7)" = '[5,0]' ]
    [ "$(sum float16 sum 1 2 3)" = '[6,0]' ]
}

lacking() { # FROM VARIABLE VALUE: worker 1 of two has that, or both
    for i in 0 1; do
        ((i < $1)) || export "$2=$3"
        tf-exec --task "worker:$i" -g parts.tfg --run train --fetch loss --feed "f$i.rec" \
            >"w$i.rec" 2>"w$i.err" 3>&- &
        worker[i]=$!
        pids+=($!)
    done
    unset "$2"
}

refused() { # N TEXT
    local code=0
    wait "${worker[$1]}" || code=$?
    cat "w$1.err"
    [ "$code" -eq 69 ]
    [ "$(wc -l <"w$1.err")" -eq 1 ]
    finds -F "$2" "w$1.err"
}

none="CUDA:0: the fake library of sums among GPUs is not there"

@test "where it has to be and is not, all say in a line what is missing, and end with 69" {
    parts 2 nccl
    for i in 0 1; do feed --steps 3 --shard $i/2 >f$i.rec; done
    lacking 0 TF_TEST_DEVICE_LACKS nccl
    for i in 0 1; do refused $i "worker:$i: schedule=nccl: $none"; done
    lacking 1 TF_TEST_DEVICE_LACKS nccl
    refused 0 "worker:0: schedule=nccl: worker 1 has no NCCL"
    refused 1 "worker:1: schedule=nccl: $none"
    lacking 1 TF_TEST_NCCL_VERSION 22700
    for i in 0 1; do refused $i "nccl: worker 1 has another kind of GPU, or another version"; done
    parts 2 nccl CPU:0
    lacking 0 NOTHING nothing
    for i in 0 1; do refused $i "schedule=nccl: no node is on a GPU"; done
}

@test "where it may be, sums are by rank unless all have it" {
    parts 3 direct
    trains 3 direct
    parts 3 nccl-auto
    TF_TEST_DEVICE_LACKS=nccl trains 3 without
    same direct without
    parts 3 nccl-auto CPU:0
    trains 3 cpu
    parts 3 nccl
    trains 3 forced
    parts 3 nccl-auto
    trains 3 with
    same forced with
}

@test "a worker whose data end leaves; the others go on over their links" {
    parts 2 nccl
    feed --steps 5 >f0.rec
    feed --steps 20 >f1.rec
    FEED0='--feed f0.rec' FEED1='--feed f1.rec' among 2 --run train --fetch loss
    [ "$(wc -l <w0.txt) $(wc -l <w1.txt)" = "5 20" ]
}

endless() { # WORKERS [NAME=VALUE]: that train until one is stopped; all have done a step
    local i
    feed --epochs 400 >f.rec
    for ((i = 0; i < $1; i++)); do
        env ${2:+"$2"} tf-exec --task "worker:$i" -g parts.tfg --run train --fetch loss \
            --feed f.rec >"w$i.rec" 2>"w$i.err" 3>&- &
        worker[i]=$!
        pids+=($!)
    done
    for ((i = 0; i < $1; i++)); do soon 60 test -s "w$i.rec"; done
}

ends_as_on_links() { # N: worker 1 is lost
    local code=0
    wait "${worker[$1]}" || code=$?
    cat "w$1.err"
    [ "$code" -eq 69 ]
    [ "$(wc -l <"w$1.err")" -eq 1 ]
    grep -qE "^tf-exec: worker:$1: step [0-9]+: .*worker:1 at unix:w[12], incarnation" "w$1.err"
    finds "waiting for 'allreduce/gradients" "w$1.err"
}

@test "kill -9 of a worker: the others say who and for what, and exit 69; another start goes on" {
    parts 3 nccl
    endless 3
    kill -9 "${worker[1]}"
    for i in 0 2; do ends_as_on_links $i; done
    trains 3 again
}

# stuck: two workers in step 75, one of whose devices waits for the other's
stuck() {
    parts 2 nccl
    endless 2 TF_TEST_NCCL_STUCK=300 # four sums a step
    for i in 0 1; do soon 60 test -e tf-nccl-stuck.$i; done
    kill -0 "${worker[0]}" "${worker[1]}"
}

has_ended() { # N: asks it to, once more
    kill -TERM "${worker[$1]}" 2>/dev/null || true
    sleep 0.3
    ! kill -0 "${worker[$1]}" 2>/dev/null
}

@test "kill -9 of a worker that others' devices wait for ends what is enqueued there" {
    stuck
    kill -9 "${worker[1]}"
    ends_as_on_links 0
    finds 'worker:0: step 75:' w0.err
}

# As over links (allreduce.bats): at the first request it ends with its step, which never ends.
@test "a step that is stopped while devices wait ends here, and is lost to the others" {
    local code=0
    stuck
    soon 60 has_ended 1
    wait "${worker[1]}" || code=$?
    [ "$code" -eq 143 ]
    ends_as_on_links 0
}

@test "a job that is asked to end does so after the same step" {
    parts 2 nccl
    endless 2
    kill -TERM "${worker[0]}"
    for i in 0 1; do
        wait "${worker[i]}" || [ $? -eq 143 ]
        tf-show --json w$i.rec 2>/dev/null | wc -l >steps$i || true
    done
    [ "$(cat steps0)" -gt 0 ]
    cmp steps0 steps1
}

# loses SCHEDULE: worker 1 has a loss that is not a number; prints codes and lines of both, without
# numbers
loses() {
    local i code
    parts 2 "$1"
    feed --steps 3 >f0.rec
    printf '%s0\n' "$(printf 'inf,%.0s' {1..64})" | tf-data csv - x=1-64 y=65:int32 --header no \
        -q >f1.rec
    for i in 0 1; do
        tf-exec --task "worker:$i" -g parts.tfg --run train --fetch loss --feed "f$i.rec" \
            >"w$i.rec" 2>"w$i.err" 3>&- &
        worker[i]=$!
        pids+=($!)
    done
    for i in 0 1; do
        code=0
        wait "${worker[i]}" || code=$?
        sed -E "s/incarnation [0-9]+/incarnation N/; s/^/$code /" "w$i.err"
    done >"$1.ends"
}

@test "what a worker's kernels find ends the step of all, as over links" {
    loses direct
    loses nccl
    cat direct.ends nccl.ends
    finds "^65 tf-exec: worker:1: step 1: node 'loss/check'" nccl.ends
    cmp direct.ends nccl.ends
}
