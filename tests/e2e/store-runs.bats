#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Two jobs of shards and one store: the second is refused, unless it goes on with the first.
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
    wait $! || true
    [ "$(tf-ckpt list --json "$store" | jq -r .run_name | sort -u)" = mine ]
}
