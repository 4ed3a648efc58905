#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Jobs of which a process is frozen for good where no lease watches it: before the job begins, while
# it is fed, after it has left, while a hook runs, when it was told to end. The job still ends, with
# its checkpoint.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

bats_require_minimum_version 1.5.0

setup_file() {
    use_tools
    export OMP_NUM_THREADS=1
    cd "$BATS_FILE_TMPDIR" || return 1
    cp -r "$root/examples/"{digits.lua,feed,data} .
    tf-graph digits.lua | tf-opt >digits.tfg
}

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    ln -s "$BATS_FILE_TMPDIR"/* .
}

teardown() {
    kill_job job
}

# train POINT:NTH:ACTION OPTION...: a job whose processes do ACTION at that failpoint
train() {
    rm -rf job ck
    TF_FAILPOINTS=$1 timeout -k 5 120 tf-run --timeout 4s --workers 2 "${@:2}" --save "$PWD/ck/" \
        --job job digits.tfg -- ./feed --rows 1-320 --shuffle --batch 32 --epochs 1 2>err 3>&-
}

# The result of an undisturbed job.
is_whole() {
    [ "$(tf-ckpt list --json ck | jq -r .step | xargs)" = "$1" ] || { cat err && return 1; }
    [ -z "$(ls job/*.pid job/*.sock 2>/dev/null)" ]
}

frozen='stands still, stopped by a signal:'

@test "workers that are frozen after they have left" {
    local mode
    for mode in '--ps 2' '--mode allreduce' '--ps 1 --mode sync,update=worker'; do
        # shellcheck disable=SC2086  # words
        train exec.gone:1:stop $mode
        is_whole 5
        finds "^[0-9T:.-]*Z tf-run: worker:[01] (pid [0-9]*) $frozen continued" err
    done
}

@test "shards that are frozen when they were told to end" {
    train serve.end:1:stop --ps 2
    is_whole 5
}

# freeze PATTERN: freezes the first matching process, once
freeze() {
    local end=$((SECONDS + 60)) process
    until process=$(pgrep -o -f "$1"); do
        [ "$SECONDS" -lt "$end" ]
        sleep 0.02
    done
    kill -STOP "$process"
}

@test "what the hook for the end runs is frozen" {
    local job
    train client.ask:1:delay=2000 --ps 2 &
    job=$!
    freeze "^tf-ps save $PWD/ck"
    wait "$job"
    is_whole 5
    finds "^[0-9T:.-]*Z tf-run: the hook 'end' (pid [0-9]*) $frozen killed" err
}

# begins NAME: a job in which a program that tf-run finds on PATH stops itself
begins() {
    local code=0
    mkdir -p "$1.bin"
    # shellcheck disable=SC2016  # its own pid
    printf '#!/bin/sh\nkill -STOP $$\n' >"$1.bin/$1"
    chmod +x "$1.bin/$1"
    PATH=$PWD/$1.bin:$PATH timeout -k 5 60 \
        tf-run --job "$1.job" "${@:2}" digits.tfg 2>"$1.err" 3>&- || code=$?
    [ "$code" -eq 71 ] || { cat "$1.err" && return 1; }
    finds "^tf-run: $1 (pid [0-9]*), a part of this, stands still, 5 s left\$" "$1.err"
    finds "^tf-run: $1 (pid [0-9]*) $frozen killed\$" "$1.err"
    flock -n "$1.job/lock" true
}

# tf-run finds its own tools first; the graph comes late, so that there is time to freeze one of
# them
begins_late() {
    local job code=0
    mkfifo graph
    timeout -k 5 60 tf-run --job late.job <graph 2>late.err 3>&- &
    job=$!
    exec 5>graph
    freeze "^tf-replicate .*late.job"
    wait "$job" || code=$?
    exec 5>&-
    [ "$code" -eq 71 ] || { cat late.err && return 1; }
    finds "^tf-run: tf-replicate (pid [0-9]*) $frozen killed\$" late.err
    flock -n late.job/lock true
}

@test "a part of tf-run is frozen before the job begins" {
    local one two three
    begins hostname --ps 1 &
    one=$!
    begins awk --ps 1 &
    two=$!
    begins_late &
    three=$!
    wait "$one"
    wait "$two"
    wait "$three"
}

@test "a feed that is frozen is ended, and another one goes on where it was" {
    local job code=0
    timeout -k 5 120 tf-run --timeout 4s --workers 2 --ps 1 --save ck/ --job job digits.tfg -- \
        sh -c '[ -e froze ] || [ "$TF_SHARD" != 1/2 ] || { echo >froze
            ./feed --rows 1-128 --batch 32; kill -STOP $$; }
            exec ./feed --rows 1-320 --batch 32 --epochs 1 --shard "$TF_SHARD"' \
        2>err 3>&- &
    job=$!
    wait "$job" || code=$?
    [ "$code" -eq 0 ] || { cat err && return 1; }
    finds "tf-run: worker:1 waits: its feed command (pid [0-9]*) ${frozen%:}" err
    finds "tf-run: worker:1: its feed command (pid [0-9]*) $frozen killed" err
    finds "worker:1 (pid [0-9]*) lost its feed command (killed by signal 9) .* started again" err
    is_whole 5
}

@test "tf-run stop, while a worker waits for a feed that is frozen" {
    local pid code=0
    timeout -k 5 120 tf-run --timeout 4s --workers 2 --ps 1 --save ck/ --job job digits.tfg -- \
        sh -c './feed --rows 1-128 --batch 32 --epochs 1; kill -STOP $$' 2>err 3>&- &
    pid=$!
    soon 60 jq -e '.step == 2' job/run.json
    tf-run stop --job job
    wait "$pid" || code=$?
    [ "$code" -eq 143 ]
    is_whole 2
}

has_socket() { # PID
    [ -n "$(find "/proc/$1/fd" -lname 'socket:*')" ]
}

@test "a signal ends who asks a shard that is frozen" {
    local job pid shard code signal began
    timeout -k 5 120 tf-run --timeout 60s --ps 1 --job job digits.tfg -- \
        sh -c './feed --rows 1-32 --batch 32 --epochs 1; exec sleep 100' 2>err 3>&- &
    job=$!
    soon 60 jq -e '.step == 1' job/run.json
    tf-ckpt init backup
    shard=$(cat job/ps-0.pid)
    kill -STOP "$shard"
    for signal in TERM INT HUP; do
        code=0
        tf-ckpt save backup --job job 2>"$signal.err" 3>&- &
        pid=$!
        soon 30 has_socket "$pid" # it has dialed
        began=$SECONDS
        kill -"$signal" "$pid"
        wait "$pid" || code=$?
        [ "$code" -eq $((128 + $(kill -l "$signal"))) ] || { cat "$signal.err" && return 1; }
        [ $((SECONDS - began)) -le 3 ]
        finds '^tf-ckpt: interrupted while waiting for ps:0$' "$signal.err"
    done
    kill -CONT "$shard"
    tf-run stop --job job
    code=0
    wait "$job" || code=$?
    [ "$code" -eq 143 ]
}
