#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Jobs whose workers update, and whose shards only add and pass on: they have the bits of
# all-reduce.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools
load ../lib/workers
load ../lib/shards

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    optimizer='optim.adam{rate = 0.003}' units=700
    export TF_CLUSTER=c OMP_NUM_THREADS=1
}

teardown() {
    kill_pids "${pids[@]}"
    kill_job "$BATS_TEST_TMPDIR/job"
}

track() { # PID: it is killed when the test ends
    pids+=("$1")
}

cluster() { # WORKERS SHARDS
    local i
    for ((i = 0; i < $1; i++)); do echo "task worker:$i unix:w$i"; done >c
    for ((i = 0; i < $2; i++)); do echo "task ps:$i unix:p$i"; done >>c
}

parts() { # MODE: of the digits, with gradients that are large enough
    sed "s/optim.adam{.*})/$optimizer)/" "$root/examples/digits.lua" >digits.lua
    tf-graph -D units="$units" digits.lua | tf-opt | tf-replicate --mode "$1" -c c |
        tf-place -c c | tf-part >parts.tfg
}

feeds() { # WORKERS STEPS: each worker's are its own
    local i
    for ((i = 0; i < $1; i++)); do
        (cd "$root/examples" && exec ./feed --rows 1-1408 --batch 16 --shard "$i/$1" --steps "$2") \
            >"f$i.rec"
        export "FEED$i=--feed f$i.rec"
    done
}

# trained STORE N MODE OPTION...: trains with all tasks, into the store
trained() {
    local store=$1 n=$2
    parts "$3"
    among "$n" --run train --fetch loss --save "$store/" "${@:4}"
}

@test "jobs of 2 to 4 workers and 1 to 3 servers: checkpoints have the bits of all-reduce" {
    while read -r n s words optimizer; do
        optimizer=${optimizer:-optim.adam{rate = 0.003\}}
        [ "$words" != - ] || words=
        cluster "$n" "$s"
        feeds "$n" 6
        for ((i = 0; i < s; i++)); do serve "ps:$i"; done
        rm -rf served exchanged
        echo "$n workers, $s servers, $words"
        trained served "$n" "sync,update=worker$words"
        trained exchanged "$n" "allreduce$words"
        tf-ckpt diff served exchanged
        stop
    done <<'END'
2 1 -
3 2 - optim.momentum{rate = 0.1, momentum = 0.9}
4 3 -
3 2 ,factors=all optim.sgd{rate = 0.1}
2 2 ,factors=all
3 2 ,delay=1
3 1 ,top=0.05
4 2 ,bits=2,threshold=0.001
3 2 ,bits=1,threshold=0.001,after=3
END
}

@test "each of all dtypes has the bits of all-reduce" {
    cat >m.lua <<'END'
device("/job:worker/task:*", function()
  local k = Placeholder{dtype = float32, shape = {}, name = "k"}
  local x = Sin(Cast(Range(0, 90011, 1), {DstT = float32}) * 0.37 + k) * Pow(3.0, k) * 10
  local each, how = {}, {}
  for i, t in ipairs{float32, float64, float16, bfloat16, int32, int64} do
    each[i], how[i] = Cast(x, {DstT = t}), i < 5 and i % 2 == 1 and "mean" or "sum"
  end
  local all = {AllReduce(each, {reductions = how, schedule = D.schedule})}
  for i, y in ipairs(all) do Identity(y, {name = "y" .. i}) end
end)
END
    cluster 3 2
    serve ps:0
    serve ps:1
    for ((i = 0; i < 3; i++)); do export "FEED$i=--feed k=$i"; done
    for schedule in direct servers; do
        tf-graph -D "schedule=$schedule" m.lua | tf-place -c c | tf-part >parts.tfg
        among 3 --fetch y1,y2,y3,y4,y5,y6
        cmp w0.txt w1.txt
        cmp w0.txt w2.txt
        mv w0.txt "$schedule.txt"
    done
    cmp direct.txt servers.txt
    [ "$(jq -r '.y1 | length' servers.txt)" = 90011 ]
}

@test "bits=N: each worker codes its own once, and adds all codes: the mean is a formula's" {
    while read -r n words kind bits group units; do
        cluster "$n" 2
        feeds "$n" 4
        serve ps:0
        serve ps:1
        trained none "$n" "sync,update=worker,$words" \
            --fetch hidden/W/gradient,hidden/W/gradient/mean
        /usr/bin/python3 "$root/tests/e2e/codes.py" once "$kind" "$bits" 0 "$group" hidden/W w?.txt
        run -66 tf-ckpt cat none hidden/W/gradient/part/residual -o part.rec # nobody codes the mean
        rm -rf none w?.txt
        stop
    done <<'END'
3 bits=1 one_bit 1 1024 128
2 bits=3 uniform 3 1024 128
3 bits=8 uniform 8 2800 2800
END
}

@test "a checkpoint of all-reduce goes on by servers to the same bits, and the other way" {
    cluster 3 2
    feeds 3 12
    serve ps:0
    serve ps:1
    for words in '' ,top=0.05; do
        rm -rf whole one two
        trained whole 3 "allreduce$words" -n 12
        trained one 3 "allreduce$words" -n 5
        trained one 3 "sync,update=worker$words" -n 12 --resume
        trained two 3 "sync,update=worker$words" -n 5
        trained two 3 "allreduce$words" -n 12 --resume
        tf-ckpt diff whole one
        tf-ckpt diff whole two
    done
}

endless() { # three workers, with servers, that have done a step and go on
    local i
    parts sync,update=worker
    feeds 3 100000
    for i in 0 1 2; do
        tf-exec --task "worker:$i" -g parts.tfg --run train --fetch loss --feed "f$i.rec" \
            >"w$i.rec" 2>"w$i.err" 3>&- &
        worker[i]=$!
        track $!
    done
    for i in 0 1 2; do soon 20 test -s "w$i.rec"; done
}

loses() { # WORKER WHOM: it ends for that
    local status=0
    wait "${worker[$1]}" || status=$?
    cat "w$1.err"
    [ "$status" -eq 69 ]
    grep -qE "^tf-exec: worker:$1: step [0-9]+: .*$2, incarn" "w$1.err"
}

@test "a server serves one job after the other, and outlives workers that are killed" {
    cluster 3 1
    serve ps:0
    endless
    kill -9 "${worker[1]}"
    for i in 0 2; do loses "$i" 'worker:1 at unix:w[0-9]'; done
    feeds 3 6
    trained after 3 sync,update=worker
    trained exchanged 3 allreduce
    tf-ckpt diff after exchanged
    [ "$(tf-ps list -c c --json | jq -s 'length')" = 0 ] # it has no variables
}

@test "kill -9 of a server: each worker ends with 69, and says who is lost and for what" {
    cluster 3 2
    serve ps:0
    serve ps:1
    endless
    kill -9 "${pids[1]}" # ps:1
    for i in 0 1 2; do
        loses "$i" 'ps:1 at unix:p1'
        [ "$(grep -c . "w$i.err")" = 1 ]
    done
}

@test "tf-run: a worker and a server are killed, and the job ends with the same bits" {
    mkdir -p run
    cp -r "$root/examples/." run
    cd run
    unset TF_CLUSTER
    tf-graph -D units=700 digits.lua | tf-opt >digits.tfg
    data=(--rows 1-1408 --shuffle --batch 16 --epochs 8)
    timeout -k 5 120 tf-run --workers 3 --mode allreduce --save whole/ digits.tfg -- \
        ./feed "${data[@]}" 3>&-
    for victim in worker-1 ps-1; do
        rm -rf ck go err
        timeout -k 5 120 tf-run --workers 3 --ps 2 --mode sync,update=worker --fetch loss \
            --save ck/ --save-every 10 --job "$BATS_TEST_TMPDIR/job" digits.tfg -- \
            "$root/tests/lib/halfway" go ./feed "${data[@]}" 2>err 3>&- &
        tf_run=$!
        track "$tf_run"
        soon 30 eval '[ -n "$(tf-ckpt list ck)" ]'
        kill -9 "$(cat "../job/$victim.pid")"
        soon 30 grep -q '(restart 1 of 5)' err
        touch go
        wait "$tf_run" || { cat err; false; }
        grep -E "^[0-9T:.-]+Z tf-run: ${victim/-/:} \(pid [0-9]+\) killed by signal 9" err
        tf-ckpt diff whole ck
    done
}

@test "tf-run: TERM saves, and --resume goes on to the same bits" {
    mkdir -p run
    cp -r "$root/examples/." run
    cd run
    unset TF_CLUSTER
    tf-graph -D units=700 digits.lua | tf-opt >digits.tfg
    data=(--rows 1-1408 --shuffle --batch 16 --epochs 4)
    line=(timeout -k 5 120 tf-run --workers 2 --ps 2 --mode "sync,update=worker")
    "${line[@]}" --save whole/ digits.tfg -- ./feed "${data[@]}" 3>&-
    "${line[@]}" --save ck/ --save-every 10 digits.tfg -- \
        "$root/tests/lib/halfway" go ./feed "${data[@]}" 2>err 3>&- &
    tf_run=$!
    track "$tf_run"
    soon 30 eval '[ -n "$(tf-ckpt list ck)" ]'
    kill -TERM "$tf_run"
    status=0
    wait "$tf_run" || status=$?
    [ "$status" -eq 143 ] || { cat err; false; }
    "${line[@]}" --save ck/ --resume digits.tfg -- ./feed "${data[@]}" 3>&-
    tf-ckpt diff whole ck
}

@test "what cannot be is refused in one line" {
    cluster 2 1
    tf-graph "$root/examples/digits.lua" | tf-opt >m.tfg
    while IFS='|' read -r mode why; do
        run -64 --separate-stderr tf-replicate --mode "$mode" -c c m.tfg -o many.tfg
        [[ $stderr == *"$why"* && $stderr != *$'\n'* ]] || { echo "$stderr"; false; }
    done <<'MODES'
async,update=worker|update=worker is of sync, where each update is by the gradients of all workers
ssp,bound=2,update=worker|update=worker is of sync
downpour,fetch=2,update=worker|update=worker is of sync
allreduce,update=worker|update=worker is of sync
sync,backup=1,update=worker|with update=worker every worker counts in every step
sync,update=worker,schedule=ring|top=SHARE, after=N, delay=1, pieces=SIZE, not 'schedule=ring'
sync,update=worker,after=3|after=N is for a code
sync,update=worker,bits=9|has codes bits=1 to 8
MODES
    run -64 --separate-stderr tf-replicate --mode sync,update=worker --compress bf16 m.tfg \
        -o many.tfg
    why="--compress is for what is pushed to shards; with --mode sync,update=worker nothing is"
    [[ $stderr == *"$why" ]]
    tf-replicate --mode sync,update=worker m.tfg | tf-place | tf-part >parts.tfg
    cluster 2 0
    run -64 --separate-stderr tf-replicate --mode sync,update=worker m.tfg -o many.tfg
    [[ $stderr == *"the cluster has no task of the job ps" ]]
    run -78 --separate-stderr tf-exec --task worker:0 -g parts.tfg --run train
    why="sums of the graph go by shards, and the cluster has no task of the job ps"
    [[ $stderr == *"$why" ]]
}
