#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-run --mode allreduce: whole jobs without shards, in which the first worker saves.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup_file() {
    use_tools
    export OMP_NUM_THREADS=1
    cp -r "$root/examples/." "$BATS_FILE_TMPDIR"
    cd "$BATS_FILE_TMPDIR" || return 1
    tf-graph digits.lua | tf-opt >digits.tfg
    feed=(./feed)
    # the result of an undisturbed run, for comparison
    train 2 60 --save whole/
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return 1
    export TMPDIR=$BATS_TEST_TMPDIR
    job=$BATS_TEST_TMPDIR/job
    store=$BATS_TEST_TMPDIR/ck
    go=$BATS_TEST_TMPDIR/go
    feed=(./feed)
}

teardown() {
    kill_job "$BATS_TEST_TMPDIR/job"
}

# job WORKERS EPOCHS OPTION...: a command line; the workers' batches together have 64 rows
job() {
    local workers=$1 epochs=$2
    shift 2
    line=(timeout -k 5 120 tf-run --workers "$workers" --mode allreduce --fetch loss "$@" digits.tfg
        -- "${feed[@]}" --rows 1-1408 --shuffle --batch "$((64 / workers))" --epochs "$epochs")
}

train() {
    job "$@"
    "${line[@]}" 3>&-
}

# The same in the background; the feed waits halfway for the file $go. $! is its timeout, which
# passes signals on.
start() {
    feed=("$root/tests/lib/halfway" "$go" ./feed)
    job "$@"
    "${line[@]}" 2>err 3>&- &
}

has_saved() {
    [ -n "$(steps_of "$store")" ]
}

has_restarted() {
    grep '(restart 1 of 5)' err
}

steps_of() { # STORE
    tf-ckpt list --json "$1" 2>/dev/null | jq .step
}

same_bits() { # as the undisturbed run has
    [ "$(steps_of "$store" | tail -n 1)" = 1320 ]
    tf-ckpt diff whole@1320 "$store@1320"
}

mean_losses() { # JOB WORKERS: a line each step
    local i files=()
    for ((i = 0; i < $2; i++)); do
        tf-show --json "$1/worker-$i.rec" | jq .loss >"$BATS_TEST_TMPDIR/loss.$i"
        files+=("$BATS_TEST_TMPDIR/loss.$i")
    done
    paste "${files[@]}" |
        awk '{ s = 0; for (i = 1; i <= NF; i++) s += $i; printf "%.9g\n", s / NF }'
}

# close FILE FILE: compares losses of 100 steps, to 1e-6 in the first one and to 1e-4 in all
close() {
    paste "$1" "$2" | sed -n 1,100p | awk '
        { d = ($1 - $2) / $2; if (d < 0) d = -d
          if (d > (NR == 1 ? 1e-6 : 1e-4)) bad = bad " " NR ":" d }
        END { if (NR != 100 || bad) { print NR " steps; beyond:" bad; exit 1 } }'
}

@test "four workers: the losses are those of one process and of workers with shards" {
    cd "$BATS_TEST_TMPDIR" && cp -r "$BATS_FILE_TMPDIR"/{digits.tfg,feed,data} .
    train 4 5 --job ring
    mean_losses ring 4 >reduced
    ./feed --rows 1-1408 --shuffle --batch 64 --epochs 5 |
        tf-exec -g <(tf-place digits.tfg) --run train --fetch loss | tf-show --json | jq .loss >one
    close reduced one
    train 4 5 --mode sync --ps 2 --job shards
    mean_losses shards 4 >sync
    close reduced sync
}

@test "--dry-run prints what could be typed: no shard, and workers that save" {
    run --separate-stderr train 2 1 --dry-run --job "$job" --save ck/ --save-every 20 --resume
    [ "$status" -eq 0 ]
    [[ $output != *"'ps:"* ]]
    [ "$(grep -c "'--task' 'worker:.'.* '--save' 'ck/' '--save-every' '20' '--resume'" \
        <<<"$output")" = 2 ]
}

@test "a worker is killed: all go back to the newest checkpoint, and on to the same bits" {
    start 2 60 --save "$store/" --save-every 20 --job "$job"
    local tf_run=$!
    soon 30 has_saved
    kill -9 "$(cat "$job/worker-1.pid")"
    soon 30 has_restarted
    touch "$go"
    wait "$tf_run"
    grep -E '^[0-9T:.-]+Z tf-run: worker:1 \(pid [0-9]+\) killed by signal 9 at step [0-9]+;' err |
        grep 'restored from .*ck@'
    same_bits
}

@test "the worker that saves is killed: the store is whole" {
    start 2 60 --save "$store/" --save-every 2 --job "$job"
    local tf_run=$!
    soon 30 has_saved
    kill -9 "$(cat "$job/worker-0.pid")"
    soon 30 has_restarted
    touch "$go"
    wait "$tf_run"
    tf-ckpt verify --data "$store"
    same_bits
}

@test "TERM: all end after the same step, which is saved; --resume goes on to the same bits" {
    start 2 60 --save "$store/" --job "$job"
    local tf_run=$! code=0
    soon 30 test -s "$job/worker-1.rec"
    kill -TERM "$tf_run"
    wait "$tf_run" || code=$?
    [ "$code" -eq 143 ]
    local last
    last=$(tf-show "$job/worker-0.rec" | sed -n '$s/^step \([0-9]*\) .*/\1/p')
    [ "$last" -lt 1320 ]
    [ "$last" = "$(tf-show "$job/worker-1.rec" | sed -n '$s/^step \([0-9]*\) .*/\1/p')" ]
    [ "$(steps_of "$store")" = "$last" ]
    feed=(./feed)
    train 2 60 --save "$store/" --resume --keep 1
    [ "$(steps_of "$store" | wc -l)" = 1 ]
    same_bits
}

@test "--keep counts the checkpoints of the job's own run, and leaves those of others" {
    tf-exec -g digits.tfg --run eval --save "$BATS_TEST_TMPDIR/other/" --steps 1 -q \
        --feed <(./feed --rows 1-64 --batch 64) >/dev/null
    start 2 60 --save "$store/" --save-every 2 --keep 3 --job "$job"
    local tf_run=$!
    soon 30 has_saved
    tf-ckpt copy "$BATS_TEST_TMPDIR/other" "$store" --lock-wait 20s
    touch "$go"
    wait "$tf_run"
    [ "$(steps_of "$store" | sort -n | sed -n '1p;$p' | xargs)" = "1 1320" ]
    [ "$(steps_of "$store" | wc -l)" -eq 4 ]
    same_bits
}

# alone N OPTION...: worker N of two, in the background
alone() {
    local n=$1
    shift
    tf-exec -c c --task "worker:$n" -g parts.tfg --run train "$@" 2>"w$n.err" 3>&- &
    worker[n]=$!
}

two_workers() {
    cd "$BATS_TEST_TMPDIR" || return 1
    cp -r "$BATS_FILE_TMPDIR"/{feed,data} .
    printf 'task worker:%d unix:w%d\n' 0 0 1 1 >c
    tf-replicate --mode allreduce "$BATS_FILE_TMPDIR/digits.tfg" | tf-place -c c |
        tf-part >parts.tfg
    declare -ga worker
}

has_done() { # STEP
    tf-show "$job/worker-1.rec" 2>/dev/null | grep "^step $1 "
}

@test "TERM while all wait for data: what was done is saved" {
    start 2 60 --save "$store/" --job "$job"
    local tf_run=$! code=0
    soon 60 has_done 660
    kill -TERM "$tf_run"
    wait "$tf_run" || code=$?
    cat err "$job"/worker-?.err
    [ "$code" -eq 143 ]
    [ "$(steps_of "$store")" = 660 ]
}

@test "the data of the first worker ends: the next one saves what comes of it" {
    two_workers
    alone 0 --feed <(./feed --rows 1-320 --batch 64) --save ck/ --save-every 2
    alone 1 --feed <(./feed --rows 1-640 --batch 64) --save ck/ --save-every 2
    wait "${worker[0]}"
    wait "${worker[1]}"
    steps_of ck >steps
    grep -qx 5 steps
    [ "$(tail -n 1 steps)" = 10 ]
    # each worker's data is long enough to resume with
    alone 0 --feed <(./feed --rows 1-320 --batch 64) --save ck/ --resume
    alone 1 --feed <(./feed --rows 1-704 --batch 64) --save ck/ --resume
    wait "${worker[0]}"
    wait "${worker[1]}"
    [ "$(steps_of ck | tail -n 1)" = 11 ]
    grep -q 'goes on after step 10; its feeds end after step 5' w0.err
}

@test "workers that would resume at different steps are refused in one line" {
    two_workers
    for n in 1 2; do
        tf-exec -g <(tf-place "$BATS_FILE_TMPDIR/digits.tfg") --run train --save $n/ \
            --feed <(./feed --rows 1-$((64 * n)) --batch 64)
    done
    alone 0 --feed <(./feed --rows 1-320 --batch 64) --save 1/ --resume
    alone 1 --feed <(./feed --rows 1-320 --batch 64) --save 2/ --resume
    for n in 0 1; do
        code=0
        wait "${worker[$n]}" || code=$?
        [ "$code" -eq 78 ]
        [ "$(wc -l <w$n.err)" = 1 ]
        grep "worker 1 would resume at step 2, worker 0 at step 1" w$n.err
    done
}

@test "a store is refused where shards have the variables" {
    cd "$BATS_TEST_TMPDIR"
    printf 'task ps:0 unix:p\ntask worker:0 unix:w\n' >c
    tf-replicate --mode sync "$BATS_FILE_TMPDIR/digits.tfg" | tf-place -c c | tf-part >parts.tfg
    run --separate-stderr tf-exec -c c --task worker:0 -g parts.tfg --run train --save ck/
    [ "$status" -eq 64 ]
    [ "${stderr#tf-exec: }" = "--save names a file where other tasks have variables" ]
    [ ! -e ck ]
}
