#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# How soon others notice that a process is gone. A killed one takes 0.2 s on an idle host; the
# median of a few attempts counts, as a host may be busy. A frozen one is noticed by its lease.
# shellcheck disable=SC2030,SC2031,SC2154  # variables of run and setup
load ../lib/tools

bats_require_minimum_version 1.5.0

readonly rounds=3 lease=1

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    export OMP_NUM_THREADS=1 TF_JOB=$PWD/job TF_LEASE=${lease}s
    unset TF_CLUSTER
    set -o pipefail
    printf 'task %s\n' 'ps:0 unix:p0' 'ps:1 unix:p1' 'worker:0 unix:w0' 'worker:1 unix:w1' >c
    for worker in 0 1; do # the first waits for the other in step 4
        (cd "$root/examples" && ./feed --batch 32 --steps $((4 - worker))) >few.$worker.rec
    done
    tf-graph "$root/examples/digits.lua" | tf-opt | tf-replicate | tf-place -c c |
        tf-part >parts.tfg
    mkfifo more.fifo # nobody writes: so workers wait for more
}

teardown() {
    end_job
}

# Puts the time of arrival before each line.
stamped() {
    local line
    while IFS= read -r line; do
        printf '%s %s\n' "$EPOCHREALTIME" "$line"
    done
}

# A worker's stderr.
work() { # NUMBER
    cat "few.$1.rec" - <more.fifo 3>&- 4>&- |
        tf-exec -g parts.tfg --task "worker:$1" --run train 2>&1 >/dev/null 3>&- 4>&- |
        stamped >"worker-$1.out" 3>&- 4>&- &
}

begin_job() {
    local task
    tf-ps init -c c
    exec 4<>more.fifo
    for task in 0 1; do
        tf-ps serve --task "ps:$task" 2>"ps-$task.out" 3>&- 4>&- &
    done
    tf-ps watch -q 3>&- 4>&- | stamped >events &
    work 0
    work 1
    soon 30 in_last_step
}

in_last_step() {
    [ "$(tf-ps stats --by worker 2>/dev/null | awk '$2 == 3' | wc -l)" = 2 ]
}

end_job() {
    kill_job job
    exec 4>&- # what feeds the workers ends
    rm -rf job # and the watcher
    wait
}

# seconds FILE PATTERN: from the event until the line came
seconds() {
    soon 20 grep -qE "$2" "$1" || { tail "$1" && false; }
    grep -m 1 -E "$2" "$1" | awk -v from="$done_at" '{ printf "%.3f\n", $1 - from }'
}

strike() { # SIGNAL TASK
    local pid
    pid=$(cat "job/${2/:/-}.pid")
    sleep 0.5
    done_at=$EPOCHREALTIME
    kill "-$1" "$pid"
}

median() {
    sort -n | sed -n "$((rounds / 2 + 1))p"
}

below() { # LIMIT FILE: the median
    local most
    most=$(median <"$2")
    echo "$2: $(tr '\n' ' ' <"$2"): median $most s"
    awk -v a="$most" -v b="$1" 'BEGIN { exit !(a < b) }'
}

# noticed SIGNAL EVENT WORDS LIMIT: the watcher's line then, and the peer's reaction
noticed() {
    local round
    for ((round = 0; round < rounds; round++)); do
        begin_job
        strike "$1" worker:1
        seconds events "^[0-9.]+ $2 worker:1 " >>watcher-of-worker
        strike "$1" ps:1
        seconds events "^[0-9.]+ $2 ps:1 " >>watcher-of-shard
        seconds worker-0.out "tf-exec: worker:0: .*ps:1 at unix:.*($3)" >>peer-of-shard
        end_job
    done
    below "$4" watcher-of-worker
    below "$4" watcher-of-shard
    below "$4" peer-of-shard
}

@test "a killed shard and a killed worker are noticed in 0.2 s" {
    noticed KILL died 'closed|reset' 0.2
}

# The watcher looks ten times a second, and the host may be busy.
@test "a frozen shard and a frozen worker are noticed within their lease" {
    noticed STOP silent 'silent for' $lease.3
}
