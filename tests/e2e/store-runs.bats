#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Two jobs with shards and one store: the second is refused, unless it resumes the first.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup_file() {
    use_tools
    cp -r "$root/examples/." "$BATS_FILE_TMPDIR"
    cd "$BATS_FILE_TMPDIR" || return 1
    tf-graph digits.lua | tf-opt >digits.tfg
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return 1
    export TMPDIR=$BATS_TEST_TMPDIR
    store=$BATS_TEST_TMPDIR/ck
}

# train OPTION...: two shards, one worker, ten rounds an epoch
train() {
    timeout -k 5 120 tf-run --ps 2 --workers 1 --save "$store/" "$@" digits.tfg 3>&- -- \
        ./feed --rows 1-640 --shuffle --batch 64 --epochs "${epochs:-1}"
}

@test "a second job is refused its store before it starts, and goes on with --resume" {
    train --run-name first
    [ "$(tf-ckpt list --json "$store" | jq -r '"\(.step) \(.run_name)"' | xargs)" = "10 first" ]
    run train --run-name second --save-every 3
    [ "$status" -eq 78 ]
    [[ $output == *"has checkpoints of run first/"*", the newest of step 10; --resume goes on "* ]]
    [ "$(tf-ckpt list --json "$store" | jq .step | xargs)" = 10 ]
    epochs=2 train --resume
    [ "$(tf-ckpt list --json "$store" | jq -r .run | sort -u | wc -l)" -eq 1 ]
    [ "$(tf-ckpt list --json "$store" | jq -r '"\(.step) \(.run_name)"' | tail -1)" = "20 first" ]
}

@test "a backup over the links is of the job's run, and never of another's place" {
    job=$BATS_TEST_TMPDIR/job
    timeout -k 5 120 tf-run --ps 2 --workers 1 --job "$job" --save "$store/" \
        --run-name mine digits.tfg >/dev/null 2>&1 3>&- -- \
        ./feed --rows 1-640 --shuffle --batch 64 --epochs 100000 &
    soon 60 tf-ps save "$store" --job "$job"
    tf-ckpt init "$BATS_TEST_TMPDIR/backup"
    tf-ckpt save "$BATS_TEST_TMPDIR/backup" --job "$job"
    [ "$(tf-ckpt list --json "$BATS_TEST_TMPDIR/backup" | jq -r .run)" = \
        "$(tf-ckpt list --json "$store" | jq -r .run | tail -1)" ]
    kill -INT $!
    wait $! || [ $? -eq 130 ]
    [ "$(tf-ckpt list --json "$store" | jq -r .run_name | sort -u)" = mine ]
}

# Looks like a job that has died: its feed waits until there is a file GO.
stall() { # GO
    cat >"$BATS_TEST_TMPDIR/stall" <<END
#!/bin/sh
./feed --rows 1-640 --batch 64 --epochs $((2 * workers))
until [ -e "$1" ]; do sleep 0.05; done
./feed --rows 1-640 --batch 64 --epochs $((2 * workers))
END
    chmod +x "$BATS_TEST_TMPDIR/stall"
}

# Everything in the store, byte for byte.
contents() {
    tf-ckpt list --json "$store" | jq -c '[.step, .run, .time, .sequence]'
    for step in $(tf-ckpt list --json "$store" | jq .step); do
        tf-ckpt export "$store@$step" "$BATS_TEST_TMPDIR/at.ckpt"
        tf-show --json "$BATS_TEST_TMPDIR/at.ckpt" | sha256sum
        rm "$BATS_TEST_TMPDIR/at.ckpt"
    done
}

# superseded STATUS COMMAND...: it waits at step 20, while another one resumes, saves and ends; then
# it ends with the status at its next checkpoint, or at its last, and loses nothing
superseded() {
    local code go=$BATS_TEST_TMPDIR/go wanted=$1
    shift
    rm -f "$go"
    stall "$go"
    "$@" "$BATS_TEST_TMPDIR/stall" 2>"$BATS_TEST_TMPDIR/first.err" 3>&- &
    local first=$!
    soon 60 has_reached "$store" 20 || { kill_pids $first; return 1; }
    "$@" ./feed --rows 1-640 --batch 64 --epochs $((3 * workers))
    has_reached "$store" 30
    contents >"$BATS_TEST_TMPDIR/before"
    touch "$go"
    wait $first && code=0 || code=$?
    cat "$BATS_TEST_TMPDIR/first.err"
    [ "$code" -eq "$wanted" ]
    [[ $(<"$BATS_TEST_TMPDIR/first.err") == *"has resumed from it since; this job saves no more"* ]]
    contents | diff "$BATS_TEST_TMPDIR/before" -
}

resume_alone() { # FEED...
    "$@" | timeout -k 5 120 tf-exec -g "$BATS_TEST_TMPDIR/placed.tfg" --run train \
        --save "$store/" --save-every "$every" --resume
}

@test "of two that resume at once the earlier ends, and what the later saved stays" {
    workers=1
    tf-place digits.tfg >"$BATS_TEST_TMPDIR/placed.tfg"
    ./feed --rows 1-640 --batch 64 --epochs 1 | tf-exec -g "$BATS_TEST_TMPDIR/placed.tfg" \
        --run train --save "$store/"
    every=10 superseded 77 resume_alone
    rm -r "$store"
    ./feed --rows 1-640 --batch 64 --epochs 1 | tf-exec -g "$BATS_TEST_TMPDIR/placed.tfg" \
        --run train --save "$store/"
    every=20 superseded 77 resume_alone # the last checkpoint
}

resume_job() { # FEED...
    timeout -k 5 120 tf-run "${shape[@]}" --save "$store/" --save-every 10 --resume digits.tfg \
        -- "$@"
}

@test "of two jobs that resume at once the earlier ends, with shards and without" {
    train
    workers=1
    shape=(--ps 2 --workers 1)
    superseded 77 resume_job
    rm -r "$store"
    workers=2
    shape=(--workers 2 --mode allreduce)
    timeout -k 5 120 tf-run "${shape[@]}" --save "$store/" digits.tfg 3>&- -- \
        ./feed --rows 1-640 --batch 64 --epochs 2
    superseded 77 resume_job
}
