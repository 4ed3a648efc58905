#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A job whose store cannot be written: it is reported before the first step if possible, and by exit
# code and line if the last checkpoint fails, also when the job was asked to end.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    export OMP_NUM_THREADS=1
    cat >big.lua <<'END'
w = variable{name = "w", shape = {500, 500}, init = init.zeros}
loss = Sum(Square(w - 1), {0, 1})
entry.train = minimize(loss, optim.sgd{rate = 0.1})
END
    tf-graph big.lua | tf-opt >big.tfg
}

teardown() {
    kill_job run
    mount -o remount,rw small 2>/dev/null || true
    umount -l small 2>/dev/null || true
}

small_disk() { # OPTIONS
    mkdir -p small
    mount -t tmpfs -o "$1" none small 2>/dev/null || skip "needs the right to mount"
}

@test "the last checkpoint fails on a full disk: 74, and what is lost, under stop as well" {
    local mode code tf_run
    small_disk size=6000k
    for mode in "--ps 2" "--mode allreduce"; do
        rm -rf small/* run
        # shellcheck disable=SC2086
        tf-run -q $mode --workers 1 --steps 100000000 --fetch loss --fetch-every 100 \
            --save small/st/ --save-every 1000000 --job run big.tfg 2>err 3>&- &
        tf_run=$!
        soon 20 test -s run/worker-0.rec
        dd if=/dev/zero of=small/fill bs=1k 2>/dev/null || true
        tf-run stop --job run
        code=0
        wait "$tf_run" || code=$?
        cat err
        [ "$code" -eq 74 ]
        finds "No space left on device" err
        case $mode in
        *ps*) finds "tf-run: the last checkpoint failed; nothing was saved$" err ;;
        *) finds "tf-run: worker:0 ended with exit 74 .*; step [0-9]* is not saved)$" err ;;
        esac
        [ -z "$(tf-ckpt list small/st --json)" ]
    done
}

@test "a store in what is missing, or no folder, or read only, is refused before any step" {
    local mode
    small_disk size=6000k
    tf-ckpt init small/st
    mount -o remount,ro small
    for mode in "--ps 2" "--mode allreduce"; do
        # shellcheck disable=SC2086
        run --separate-stderr timeout 60 tf-run -q $mode --workers 1 --steps 3 \
            --save none/a/b/ --job run big.tfg
        [ "$status" -eq 66 ]
        [ "$stderr" = "tf-run: --save none/a/b/: none/a: No such file or directory" ]
        [ ! -e none ]
        # shellcheck disable=SC2086
        run --separate-stderr timeout 60 tf-run -q $mode --workers 1 --steps 3 \
            --save big.tfg/st/ --job run big.tfg
        [ "$status" -eq 66 ]
        [ "$stderr" = "tf-run: --save big.tfg/st/: big.tfg: Not a directory" ]
        # shellcheck disable=SC2086
        run --separate-stderr timeout 60 tf-run -q $mode --workers 1 --steps 3 --fetch loss \
            --save small/st/ --job run big.tfg
        [ "$status" -eq 77 ]
        [ "$(wc -l <<<"$stderr")" -eq 1 ]
        [[ $stderr == "tf-run: --save small/st/: "*"Read-only file system" ]]
        [ ! -e run/worker-0.rec ]
    done
}

@test "a store in a folder that only seems to be writable is refused before any step" {
    local mode
    [ -w /proc ] || skip "of who may write to /proc"
    for mode in "--ps 2" "--mode allreduce"; do
        for save in /proc/nope/ /proc/; do
            # shellcheck disable=SC2086
            run --separate-stderr timeout 60 tf-run -q $mode --workers 1 --steps 3 \
                --save "$save" --job run big.tfg
            [ "$status" -eq 74 ]
            [ "$stderr" = "tf-run: --save $save: /proc: nothing can be made there: No such file \
or directory" ]
            [ ! -e run ]
        done
    done
}

@test "what looks whether a folder takes anything is in nobody's way, also where it was killed" {
    strace -qq -o trace.txt -e inject=getppid:error=EIO true 2>/dev/null || skip "may not trace"
    mkdir store
    strace -f -qq -o trace.txt -e inject=rmdir:signal=KILL \
        tf-run --ps 1 --workers 1 --steps 1 --save store/ --dry-run big.tfg >out 2>&1 || true
    [ "$(find store -mindepth 1 | wc -l)" = 1 ]
    tf-exec -q -g big.tfg --run train --steps 1 --save store
    tf-ckpt verify store
    [ -z "$(find store -name '*.tmp')" ]
}

@test "a job that is ended before its variables have values has nothing to save: 143" {
    local tf_run code=0
    cat >slow.lua <<'END'
local i = while_loop(function(i) return Less(i, 2^31 - 1) end, function(i) return i + 1 end, {0})
w = variable{name = "w", shape = {}, dtype = float32, init = Cast(i, {DstT = float32})}
entry.train = minimize(Square(w - 1), optim.sgd{rate = 0.1})
END
    tf-graph slow.lua | tf-opt >slow.tfg
    tf-run --ps 2 --workers 1 --steps 10 --mode async --save st/ --job run slow.tfg 2>err 3>&- &
    tf_run=$!
    soon 20 eval 'tf-ps list --job run --timeout 1s >list 2>/dev/null && grep -q "^ps:0 .* w " list'
    kill -TERM "$tf_run"
    wait "$tf_run" || code=$?
    cat err
    [ "$code" -eq 143 ]
    finds "ps:0: nothing to save: variable 'w' has no value$" err
    finds "tf-run: ended; nothing was saved to st/$" err
    [ -z "$(tf-ckpt list st --json)" ]
}
