#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Workers that are groups of tasks: each group counts, dies and comes back as one worker.
# shellcheck disable=SC2030,SC2031,SC2154  # variables of run
load ../lib/tools
load ../lib/refused
bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cp -r "$root/examples/." "$BATS_TEST_TMPDIR"
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    export OMP_NUM_THREADS=1
    cat >m.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 64}}
y = Placeholder{dtype = int32, shape = {-1}}
local function on(k, f) device("/job:worker/task:" .. k, f) end
on(0, function() h = nn.dense(x / 16, 32, {name = "h", activation = Tanh}) end)
on(1, function()
  logits = nn.dense(h, 10, {name = "out"})
  loss = nn.cross_entropy(logits, y)
end)
entry.train = minimize(loss, optim.momentum{rate = 0.05})
LUA
    sed 's|^local function on.*|local function on(_, f) f() end|' m.lua >plain.lua
    tf-graph m.lua | tf-opt -q >m.tfg
    tf-graph plain.lua | tf-opt -q >plain.tfg
}

teardown() {
    kill_job "$BATS_TEST_TMPDIR/job"
}

job() { # MODE GRAPH SAVE [OPTION]... [-- FEED]
    local mode=$1 graph=$2 save=$3 options=() feed=(./feed)
    shift 3
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    [ $# = 0 ] || feed=("${@:2}")
    timeout -k 5 90 tf-run --ps 2 --workers 2 --mode "$mode" --fetch loss --save "$save" \
        --job job "${options[@]}" "$graph" -- "${feed[@]}" \
        --rows 1-1437 --shuffle --batch 32 --epochs 4 3>&-
}

values() { # CHECKPOINT: text to compare; how often a worker was started is the clock's to remember
    tf-ckpt export "$1" values.ckpt
    tf-show --json values.ckpt | grep -v '^{"clock:' | sort
}

@test "two replicas of two tasks are, to the bit, two workers; a task gets only what it uses" {
    job sync plain.tfg plain/
    rm -rf job
    job sync m.tfg groups/ --replica-tasks 2 2>err
    cat err
    grep -E '^worker:0 +[0-9]+ +92 +92 ' err # of whom the clock knows as worker:0 and worker:1
    grep -E '^worker:2 +[0-9]+ +92 +92 ' err
    grep -E '^worker:1 +[0-9]+ +- ' err
    diff <(values plain/) <(values groups/)
    [ "$(values groups/ | wc -l)" -ge 8 ]
    # the second task of a replica does not use the variables of the first
    for k in 0 1 2 3; do echo "task worker:$k unix:w$k"; done >cluster
    printf 'task ps:%s unix:p%s\n' 0 0 1 1 >>cluster
    tf-replicate --mode sync --replica-tasks 2 m.tfg | tf-place -c cluster |
        tf-part -c cluster --report 2>report >parts.tfg
    [ "$(tf-show parts.tfg | grep -c '^graph')" = 4 ]
    grep -E '^h/W/read +/job:ps.* -> /job:worker/task:0%2/' report
    grep -E '^out/W/read +/job:ps.* -> /job:worker/task:1%2/' report
    [ "$(grep -cE '^(h/W|h/b)/read .*task:1%2|^out/(W|b)/read .*task:0%2' report)" = 0 ]
}

@test "either task of a replica is killed: it is back as a whole, with the same bits" {
    job sync m.tfg whole/ --replica-tasks 2
    for task in worker-2 worker-3; do
        rm -rf job go
        job sync m.tfg $task/ --replica-tasks 2 -- "$root/tests/lib/halfway" "$PWD/go" ./feed \
            2>$task.err &
        local pid=$!
        soon 30 test -s job/worker-2.rec
        kill -9 "$(cat job/$task.pid)"
        touch go
        wait $pid || { cat $task.err && false; }
        cat $task.err
        grep 'restart 1 of' $task.err
        diff <(values whole/) <(values $task/)
    done
}

@test "groups in the other modes" {
    local mode
    for mode in async ssp,bound=1 sync,backup=1 downpour,fetch=2,push=2 downpour,push.h=2; do
        rm -rf job
        job $mode m.tfg "$mode/" --replica-tasks 2 2>err
        cat err
        [ "$(grep -cE '^worker:[02] .* done$' err)" = 2 ]
        [ "$(values "$mode/" | wc -l)" -ge 8 ]
    done
}

@test "what cannot be is refused in a line" {
    for k in 0 1 2; do echo "task worker:$k unix:w$k"; done >three
    echo 'task ps:0 unix:p0' >>three
    refused 64 'tf-replicate: --replica-tasks is about workers with shards, not --mode allreduce' \
        'tf-replicate --mode allreduce --replica-tasks 2 m.tfg'
    refused 65 "tf-replicate: m.tfg: node '*' (m.lua:*): it asks for task 10, but a \
replica has 2 tasks" \
        'sed -i s/task:/task:1/ m.lua && tf-graph m.lua | tf-opt -q >m.tfg;
         tf-replicate --replica-tasks 2 m.tfg'
    refused 78 'tf-place: *: the replicas are groups of 2 tasks, but the cluster has 3 workers' \
        'tf-replicate --replica-tasks 2 plain.tfg | tf-place -c three'
    { echo 'task worker:3 unix:w3' && cat three; } >four
    tf-replicate --replica-tasks 2 plain.tfg | tf-place -c four | tf-part >parts.tfg
    refused 78 'tf-exec: *groups of 2 tasks, of which the first drive: worker:1 serves (*' \
        'tf-exec -g parts.tfg -c four --task worker:1 --run train -n 1'
}
