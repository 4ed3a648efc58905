#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Shards that resume while one system call of one of them fails: they never take an older checkpoint
# for the newest, nor mix two. RESTORE_FAULTS=N: every Nth call is tried (31).
load ../lib/tools
load ../lib/shards

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    pids=()
}

teardown() {
    kill_pids "${pids[@]}"
}

@test "a call that fails in a restore of shards ends it, or all is right" {
    strace -qq -o trace.txt -e inject=getppid:error=EIO true 2>/dev/null || skip "may not trace"
    printf 'task ps:%d unix:p%d\n' 0 0 1 1 >c
    echo 'task worker:0 unix:w0' >>c
    cat >m.lua <<'LUA'
v, w = variable{name = "v", shape = {300}, init = init.zeros},
       variable{name = "w", shape = {300}, init = init.zeros}
entry.train = group{AssignAdd(v, OnesLike(v)), AssignAdd(w, OnesLike(w))}
LUA
    tf-graph m.lua | tf-place -c c | tf-part >p.tfg
    tf-ckpt init saved
    serve ps:0
    serve ps:1
    for _ in 1 2 3; do
        work 0 --run train --steps 10
        tf-ps save "$PWD/saved" -c c
    done
    stop
    [[ -d saved/shards/ps-0 && -d saved/shards/ps-1 ]]
    run "$BATS_TEST_DIRNAME/restore_faults.py" saved 30 "${RESTORE_FAULTS:-31}"
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output =~ ^[1-9][0-9]*' went on, '[1-9] ]]
}
