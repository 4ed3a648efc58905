#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Workers that hold gradients of some layers back for a number of steps, compared with NumPy.
# shellcheck disable=SC2154,SC2030,SC2031  # root, feed are of lib/tools and lib/push_codes
load ../lib/tools
load ../lib/shards
load ../lib/push_codes
load ../lib/two_layers

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    export OMP_NUM_THREADS=1
    model sgd
}

model() { # OPTIMIZER: m.tfg
    opt=$1
    tf-graph -D "opt=$opt" "$root/tests/e2e/two_layers.lua" | tf-opt >m.tfg
}

teardown() {
    kill_pids "${pids[@]}"
    for dir in job-*; do kill_job "$dir"; done
}

# learns WORKERS STEPS STORE VARIABLE=INTERVAL...: the newest checkpoint has NumPy's values
learns() {
    local workers=$1 steps=$2 store=$3 v
    shift 3
    tf-ckpt show --all "$store" |
        awk '$1 ~ /^(one|two)\/[Wb]$|^steps$|^worker_value/ { print $1 }' >names
    while read -r v; do
        tf-ckpt cat "$store" "$v" | tf-show --json
    done <names >got.json
    /usr/bin/python3 -B "$root/tests/e2e/intervals.py" "$opt" "$workers" "$steps" "$@" got.json
}

# shard MODE CLUSTER-LINE...: serves the shards for the workers
shard() {
    local mode=$1
    shift
    printf '%s\n' 'task ps:0 unix:p0' 'task ps:1 unix:p1' "$@" >c
    tf-replicate --mode "$mode" m.tfg | tf-place -c c | tf-part >p.tfg
    serve ps:0
    serve ps:1
}

@test "one worker: each layer gets its sum of gradients in its own steps" {
    feeds 1 60
    while read -r steps how mode intervals; do
        model "$how"
        shard "$mode" 'task worker:0 unix:w0'
        work 0 --run train --feed f0.rec --steps "$steps" >out
        tf-ps save "s$steps/" -c c --timeout 30s
        # shellcheck disable=SC2086  # several words
        learns 1 "$steps" "s$steps" $intervals
        stop
    done <<'END'
11 sgd downpour,push.one=3 one/W=3
12 adam downpour,push.one=5 one/W=5
10 fed downpour,push.one=3,push.two/b=2 one/W=3 two/b=2
14 sgd downpour,push=2,push.one=6,push.two/b=4 one/W=6 two/W=2 two/b=4
13 adam downpour,push=3,push.two=1,push.*/b=5 one/W=3 two/W=1 two/b=5
END
}

@test "two workers in turns, who leave after each step and come back: what they hold back stays" {
    feeds 2 40
    shard downpour,push.one=3,push.two/b=2 'task worker:0 unix:w0' 'task worker:1 unix:w1'
    local step k
    for step in 1 2 3 4 5 6 7; do
        for k in 0 1; do
            work $k --run train --feed "f$k.rec" --steps "$step" >out
        done
    done
    tf-ps save s/ -c c --timeout 30s
    learns 2 7 s one/W=3 two/b=2
    stop
}

@test "what is held back is in checkpoints: a job whose worker is killed ends with the same bits" {
    feeds 1 60
    export workers=1
    feed=(tf-data csv f0.csv x=1-6:float64 y=7-9:float64 --batch 2)
    local mode=downpour,push=2,push.one=10,push.two/b=6
    job whole $mode --save-every 2 m.tfg -- "${feed[@]}"
    killed one $mode worker-0 "$root/tests/lib/halfway" "$PWD/one.go" "${feed[@]}"
    tf-ckpt diff whole one
    learns 1 28 one one/W=10 two/W=2 two/b=6 && return 1 # thirty steps, of which none is repeated
    learns 1 30 one one/W=10 two/W=2 two/b=6
}

@test "in few bits: what counted, what is held back and what codes have lost are all gradients" {
    cat >m.lua <<'LUA'
local x = Placeholder{dtype = float32, shape = {-1, 1024}, name = "x"}
local w = variable{name = "w", shape = {1024, 1}, init = 0}
local u = variable{name = "u", shape = {1}, init = 0}
loss = Sum(MatMul(x, w), {0, 1}) + Sum(u, 0)
entry.train = minimize(loss, optim.sgd{rate = 1})
LUA
    tf-graph m.lua | tf-opt >m.tfg
    awk 'BEGIN { for (i = 0; i < 62; i++) for (k = 0; k < 1024; k++)
        printf "%d%s", (i * 7 + k * k) % 23 - 11, k < 1023 ? "," : "\n" }' >x.csv
    half job
    killed job downpour,push.w=4,bits=1 worker-1 "${feed[@]}"
    all_there job 1
    grep -c 'w/gradient/held/' names | grep -x 2
    [ "$(tf-ckpt cat job u | tf-show --json | jq '.u[0]')" = -62 ]
}
