#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A running job as its user sees it: its directory, the verbs of tf-ps, checkpoints, the watcher.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    ln -s "$root/examples/data" data
    export OMP_NUM_THREADS=1 TF_JOB=run
    unset TF_CLUSTER TF_KEY_FILE
}

teardown() {
    kill_pids "${pids[@]}"
    umount -l small 2>/dev/null || true
}

serve() { # N [OPTION]...: shard N of the job
    local n=$1
    shift
    tf-ps serve --task "ps:$n" "$@" 2>>"run/ps-$n.err" 3>&- &
    pids+=($!)
    soon 10 grep -q "ps:$n: ready on" "run/ps-$n.err"
}

begin() { # ADDRESS [OPTION]...: a job of two shards at such addresses, and its graph
    local address=$1
    shift
    printf 'task ps:0 %s device=CPU:0\ntask ps:1 %s\ntask worker:0 unix:w0\n' \
        "${address/N/0}" "${address/N/1}" >c
    tf-ps init -c c
    serve 0 "$@"
    serve 1 "$@"
    tf-graph "$root/examples/digits.lua" | tf-opt | tf-place -c c | tf-part >parts.tfg
}

train() { # five steps
    "$root/examples/feed" --rows 1-1437 --batch 64 --steps 5 |
        timeout -s KILL 60 tf-exec -g parts.tfg --task worker:0 --run train
}

@test "the shards of a running job: list, get, put, reset, stats" {
    begin 127.0.0.1:0
    [ "$(stat -c %a run run/key | paste -sd' ')" = "700 600" ]
    [ "$(grep -cE '^task ps:[01] 127.0.0.1:[1-9][0-9]+' run/cluster)" -eq 2 ]
    train
    tf-ps list | finds -E '^TASK +CONTAINER +NAME +TYPE +UPDATES$'
    tf-ps list | finds -E '^ps:[01] +default +output/W +float32\[128,10\] +6$'
    [ "$(tf-ps list | wc -l)" -eq 15 ]
    [ "$(tf-ps list --json | jq -r 'select(.name == "output/b") | .type')" = "float32[10]" ]
    [ "$(tf-ps list --json --task ps:0 | jq -r .task | sort -u)" = ps:0 ]
    tf-ps get output/W | tf-op Abs | tf-op Max - '[0,1]' | tf-show | finds '^float32\[\]'

    tf-op Mul "$(seq -s, 1 10 | sed 's/.*/[&.0]/')" 0.5 -o new.npy
    tf-ps put output/b new.npy
    [ "$(tf-ps get output/b | tf-show)" = \
        "output/b  float32[10]  0.5 1 1.5 2 2.5 3 3.5 4 4.5 5" ]
    tf-ps get output/b -o b.npy
    cmp b.npy new.npy
    tf-ps get output/b >b.rec
    tf-ps put output/b - <b.rec
    tf-op Identity 7.0 | cat - b.rec >several.rec
    tf-ps put output/b several.rec
    cmp b.rec <(tf-ps get output/b)
    run --separate-stderr tf-ps put output/W several.rec
    [ "$stderr" = "tf-ps: several.rec: which of its 2 tensors? none is called 'output/W'" ]
    run --separate-stderr tf-ps put output/W new.npy
    [ "$status" -eq 65 ]
    [[ $stderr == "tf-ps: ps:"?": variable 'output/W' is [128,10], the new value [10]" ]]
    run --separate-stderr tf-ps get W
    [ "$status" -eq 66 ]
    [ "$stderr" = "tf-ps: no shard has a variable 'W'" ]

    run --separate-stderr tf-ps reset --container scratch
    [ "$status" -eq 66 ]
    [ "$stderr" = "tf-ps: no shard has a container 'scratch'" ]
    tf-ps reset
    run --separate-stderr tf-ps get output/b
    [ "$status" -eq 66 ]
    [[ $stderr == "tf-ps: ps:"?": variable 'output/b' is not initialized" ]]

    tf-ps stats | finds -E '^TASK +UP +STILL +LINKS +IN +OUT +STAGED +HELD +REFUSED +SAVES +FAILED$'
    tf-ps stats --by key | finds -E '^ps:[01] +output/W +6 +0 B$'
    tf-graph -D units=32 "$root/examples/digits.lua" | tf-opt | tf-place -c c | tf-part >parts.tfg
    train # what was reset may have other shapes
    tf-ps list | finds -E '^ps:[01] +default +output/W +float32\[32,10\] +6$'
    [ "$(tf-ps list | wc -l)" -eq 15 ]
    tf-ps stats --by worker | finds '^WORKER  CLOCK  BEHIND  WAITED  PUSHED  LATE'
    run --separate-stderr tf-ps stats --by hour
    [ "$status" -eq 64 ]
}

@test "a line for each task, and an end that leaves nothing" {
    begin unix:pN
    tf-ps status |
        grep -qE '^ps:0 pid=[0-9]+ incarnation=1 up=.+s still=.+s step=- workers=0 saved=-$'
    [ "$(tf-ps status | wc -l)" -eq 2 ]
    run --separate-stderr tf-ps init -c c
    [ "$status" -eq 75 ]
    [ "$stderr" = "tf-ps: job directory run: the process of ps-0.pid lives" ] ||
        [ "$stderr" = "tf-ps: job directory run: the process of ps-1.pid lives" ]
    run --separate-stderr tf-ps serve --task ps:0
    [ "$status" -eq 75 ]
    [[ $stderr == "tf-ps: run: ps:0 runs already, as pid "* ]]
    tf-ps stop
    soon 10 test ! -e run/ps-0.pid
    soon 10 test ! -e run/ps-1.pid
    tf-ps end
    [ "$(find run -type f -o -type s | sort | paste -sd' ')" = "run/ps-0.err run/ps-1.err" ]
    run --separate-stderr tf-ps list
    [ "$status" -eq 66 ]
    [ "$stderr" = "tf-ps: job directory run: no job runs there (no cluster file)" ]
}

@test "who cannot be asked is named: another key, a dead process, a frozen one" {
    begin 127.0.0.1:0
    (umask 077 && openssl rand -hex 32 >other.key)
    run --separate-stderr tf-ps list --key-file other.key
    [ "$status" -eq 77 ]
    [[ $stderr == "tf-ps: ps:"?" at 127.0.0.1:"*": other.key is not the key of this cluster" ]]
    tf-ps list
    [ "$(tf-ps stats --json | jq -s 'map(.refused) | add >= 1')" = true ]

    kill -STOP "$(cat run/ps-0.pid)"
    run --separate-stderr tf-ps list --timeout 0.5s
    [ "$status" -eq 69 ]
    [[ $stderr == *"ps:0 at unix:ps-0.sock"* ]]
    kill -CONT "$(cat run/ps-0.pid)"
    kill -9 "$(cat run/ps-0.pid)"
    soon 10 test ! -e "/proc/$(cat run/ps-0.pid)/fd/0"
    run --separate-stderr tf-ps list
    [ "$status" -eq 69 ]
    [[ $stderr == "tf-ps: ps:0 at 127.0.0.1:"*": its process (pid "*") has died" ]]
    tf-ps list --task ps:1
}

# Flips a bit in the last chunk that was written there and has pages of its own.
damage_newest() { # ENVIRONMENT
    python3 - "$1/data.mdb" <<'END'
import sys
with open(sys.argv[1], 'r+b') as f:
    data = f.read()
    page = max(p for p in range(0, len(data), 4096)
               if int.from_bytes(data[p + 10:p + 12], 'little') & 4
               and data[p + 16:p + 24] != b'TFCKPT\r\n'
               and int.from_bytes(data[p:p + 8], 'little') == p // 4096)
    f.seek(page + 100)
    f.write(bytes([data[page + 100] ^ 1]))
END
}

@test "restore DIR@best means the best, also where only the shards see the store" {
    unshare -rm sh -c 'mount -t tmpfs none /mnt' 2>/dev/null || skip "may not mount"
    tf-graph - >g.tfg <<'END'
w = variable{name = "w", shape = {}, init = 0.0}
loss = Square(w - 2)
entry.train = AssignAdd(w, Const(1.0))
END
    tf-exec -q -g g.tfg --run train --steps 5 --fetch loss --save st/ --save-every 1 \
        --save-best loss >/dev/null
    begin unix:pN
    tf-ps restore st@best 2>&1 | finds -x 'tf-ps: restored from step 2'
    mkdir hidden
    unshare -rm sh -c 'mount --bind hidden st && tf-ps restore st@best' 2>&1 |
        finds -x 'tf-ps: restored from step 2'
    unshare -rm sh -c 'mount --bind hidden st && tf-ps restore st' 2>&1 |
        finds -x 'tf-ps: restored from step 5'
}

@test "a checkpoint of all shards, and back" {
    local i
    begin unix:pN --save ckpt/
    train
    tf-ps get output/b >before.rec
    tf-ps save ckpt
    tf-ps save ckpt -v 2>&1 | finds -x 'tf-ps: ckpt@2'
    [ "$(tf-ckpt list --json ckpt | jq -c '[.step, .shards]')" = $'[1,2]\n[2,2]' ]
    tf-ckpt show ckpt | finds -E '^output/b +float32\[10\] .*ps-1'
    train
    ! cmp -s before.rec <(tf-ps get output/b) || false
    tf-ps restore ckpt
    cmp before.rec <(tf-ps get output/b)
    tf-ps put output/b <(tf-op Mul '[1.0,2,3,4,5,6,7,8,9,10]' 1.0)
    tf-ps restore ckpt@1
    cmp before.rec <(tf-ps get output/b)

    # by a tag, which a shard's part does not have
    tf-ckpt tag ckpt@1 first
    tf-ps put output/b <(tf-op Mul '[1.0,2,3,4,5,6,7,8,9,10]' 1.0)
    tf-ps restore ckpt@first 2>&1 | finds -x 'tf-ps: restored from step 1'
    cmp before.rec <(tf-ps get output/b)
    run --separate-stderr tf-ps restore ckpt@none
    [[ $status -eq 66 && $stderr == "tf-ps: ckpt@none: no checkpoint has this tag" ]]
    tf-graph - > g.tfg <<< 'w = variable{name = "w", shape = {}, init = 0.0}
        entry.train = AssignAdd(w, Const(1.0))'
    local part write existing=("tf-ckpt tag ckpt/shards/ps-0@2 part"
        "tf-ckpt save ckpt/shards/ps-0 --job run" "tf-ckpt forget ckpt/shards/ps-0@2")
    for part in ckpt/shards/ps-0 ckpt/shards/own; do # which only the shards write to
        for write in "tf-ps save $part" "tf-exec -g g.tfg --run train --steps 1 --save $part/" \
            "tf-ps serve -c c --task ps:0 --save $part" \
            "tf-run g.tfg --job other --save $part/" "${existing[@]}"; do
            # shellcheck disable=SC2086
            run --separate-stderr $write < /dev/null
            [[ $status -eq 64 && $stderr == *"is a part of $PWD/ckpt, which is to be named" ]]
        done
    done
    [ "$(ls ckpt/shards)" = $'ps-0\nps-1' ]
    tf-ckpt verify ckpt
    run --separate-stderr tf-ps restore ckpt@7
    [ "$status" -eq 66 ]
    [[ $stderr == *"ckpt@7: there is no checkpoint of this step" ]]

    # killed and restarted: the newest, or the one before if that is damaged
    train
    tf-ps save ckpt
    damage_newest ckpt/shards/ps-0
    kill -9 "$(cat run/ps-0.pid)" "$(cat run/ps-1.pid)"
    soon 10 test ! -e "/proc/$(cat run/ps-0.pid)/fd/0"
    : >run/ps-0.err
    : >run/ps-1.err
    soon 30 serve 0 --save ckpt --resume
    serve 1 --save ckpt --resume
    grep -qE "^tf-ps: ps:0: passed over: ckpt@3: '.*': chunk . of . in ps-0: digest differs$" \
        run/ps-0.err # the first decides for all
    for i in 0 1; do grep -qx "tf-ps: ps:$i: restored from ckpt@2" "run/ps-$i.err"; done
    cmp before.rec <(tf-ps get output/b)
    tf-ps status | finds '^ps:1 pid=[0-9]* incarnation=2 '
}

@test "what two shards saved is kept for the graph that one gets, though a save comes first" {
    begin unix:pN
    train
    tf-ps save ckpt
    tf-ps get hidden/W >before.rec
    kill_pids "${pids[@]}"
    rm -rf run
    printf 'task ps:0 unix:p0 device=CPU:0\ntask worker:0 unix:w0\n' >c
    tf-ps init -c c
    serve 0 --save ckpt --resume
    run --separate-stderr tf-ps save ckpt
    [ "$status" -eq 75 ]
    [[ $stderr == *"ckpt: nothing to save: no variable has a value yet, and step 1 has "* ]]
    [ "$(tf-ckpt list --json ckpt | jq -s length)" -eq 1 ]
    tf-graph "$root/examples/digits.lua" | tf-opt | tf-place -c c | tf-part >parts.tfg
    "$root/examples/feed" --rows 1438- --batch 360 >eval.rec
    mv ckpt unmounted
    run --separate-stderr timeout -s KILL 60 tf-exec -g parts.tfg --task worker:0 --run eval \
        --feed eval.rec -o fetches.rec
    [ "$status" -eq 66 ]
    [[ $stderr == *": ps:0: node 'hidden/W' "*": ckpt: no store there; tf-ckpt init makes one" ]]
    mv unmounted ckpt
    timeout -s KILL 60 tf-exec -g parts.tfg --task worker:0 --run eval --feed eval.rec >/dev/null
    cmp before.rec <(tf-ps get hidden/W)
    tf-ps save ckpt
    tf-ckpt diff ckpt@1 ckpt
}

# The first two kills certainly come before the save, the others at any moment.
@test "a shard that is killed while it saves leaves the checkpoint before" {
    local kill kills=${SAVE_KILLS:-6} before restored saved victim
    begin unix:pN
    train
    tf-ps save ckpt
    for ((kill = 0; kill < kills; kill++)); do
        before=$(tf-ckpt list --json ckpt | tail -n 1 | jq .step)
        tf-ps get hidden/W >"$before.rec"
        train
        tf-ps get hidden/W >"$((before + 1)).rec"
        run -1 cmp "$before.rec" "$((before + 1)).rec"
        victim=$(cat "run/ps-$((kill % 2)).pid")
        ((kill >= 2)) || kill -STOP "$victim"
        tf-ps save ckpt --timeout 5s & saver=$!
        sleep "0.0$((kill < 2 ? 99 : RANDOM % 40 + 10))"
        kill -9 "$victim"
        saved=0
        wait "$saver" || saved=$?
        ((kill >= 2 || saved == 69))
        kill -9 "$(cat "run/ps-$((1 - kill % 2)).pid")"
        : >run/ps-0.err
        : >run/ps-1.err
        soon 30 serve 0 --save ckpt --resume
        soon 30 serve 1 --save ckpt --resume
        [ "$(grep -ohE 'restored from ckpt@.*' run/ps-?.err | sort -u | wc -l)" -eq 1 ]
        restored=$(grep -ohE 'restored from ckpt@[0-9]+' run/ps-0.err)
        restored=${restored#*@}
        ((kill >= 2 || restored == before))
        case $saved in
        0) [ "$restored" -eq $((before + 1)) ] ;; # nothing is lost that was said to be saved
        69) [ "$restored" -eq "$before" ] || [ "$restored" -eq $((before + 1)) ] ;;
        *) echo "tf-ps save ended with $saved" && return 1 ;;
        esac
        cmp "$restored.rec" <(tf-ps get hidden/W)
    done
    tf-ps save ckpt
}

# Two workers in sync, with shards that save every 10 updates; ends when both have seen all data.
both_work() {
    local i
    for i in 0 1; do
        "$root/examples/feed" --rows 1-1437 --batch 32 --shard "$i/2" --epochs 10 |
            timeout -s KILL 60 tf-exec -g parts.tfg --task "worker:$i" --run train \
                2>"w$i.err" 3>&- &
        pids+=($!)
        workers[i]=$!
    done
}

values() { # of all variables, as records
    local name
    tf-ps list --json | jq -r .name | while read -r name; do tf-ps get "$name"; done
}

counted() { # pushes, of all workers
    tf-ps stats --json --task ps:0 | jq '[.workers[].counted] | add // 0'
}

@test "pushes that a lost shard undoes are counted to the last one" {
    local workers=() before after worker code
    printf 'task ps:0 unix:p0\ntask ps:1 unix:p1\ntask worker:0 unix:w0\ntask worker:1 unix:w1\n' >c
    tf-ps init -c c
    tf-graph "$root/examples/digits.lua" | tf-opt | tf-replicate --mode async |
        tf-place -c c | tf-part >parts.tfg
    serve 0 --save ckpt --save-every 50
    serve 1
    both_work
    soon 10 has_reached ckpt 100
    kill -9 "$(cat run/worker-0.pid)" "$(cat run/worker-1.pid)"
    for worker in "${workers[@]}"; do
        code=0
        wait "$worker" || code=$?
        [ "$code" -eq 137 ]
    done
    sleep 0.3
    before=$(counted)
    kill -9 "$(cat run/ps-0.pid)" "$(cat run/ps-1.pid)"
    : >run/ps-0.err
    : >run/ps-1.err
    soon 30 serve 0 --save ckpt --resume
    soon 30 serve 1 --save ckpt --resume
    after=$(counted)
    ((before >= 100 && after >= 50 && after % 50 == 0))
    if ((before > after)); then
        grep -qE "ckpt@$after; $((before - after)) push(es)? that had counted (is|are) undone" \
            run/ps-0.err
    fi
    [ "$(tf-ps get hidden/b --container default | tf-show | cut -d' ' -f1)" = hidden/b ]
}

@test "all shards killed in a synchronous run, and resumed: the same bits as undisturbed" {
    local workers=() run worker code
    for run in calm killed; do
        export TF_JOB=$run
        rm -rf run
        mkdir run
        printf 'task ps:0 unix:%s0\ntask ps:1 unix:%s1\n' "$run" "$run" >c
        printf 'task worker:0 unix:%sw0\ntask worker:1 unix:%sw1\n' "$run" "$run" >>c
        tf-ps init -c c
        tf-graph "$root/examples/digits.lua" | tf-opt | tf-replicate --mode sync |
            tf-place -c c | tf-part >parts.tfg
        serve 0 --save "$run.ckpt" --save-every 10
        serve 1 --save "$run.ckpt" --save-every 10
        both_work
        if [ "$run" = killed ]; then
            soon 10 has_reached killed.ckpt 20
            kill -9 "$(cat killed/ps-0.pid)" "$(cat killed/ps-1.pid)"
            for worker in "${workers[@]}"; do
                code=0
                wait "$worker" || code=$?
                [ "$code" -eq 69 ]
            done
            : >run/ps-0.err
            : >run/ps-1.err
            soon 10 serve 0 --save killed.ckpt --resume
            soon 10 serve 1 --save killed.ckpt --resume
            grep -qE '^tf-ps: ps:1: restored from killed.ckpt@[0-9]+0$' run/ps-1.err
            both_work
        fi
        wait_each "${workers[0]}" "${workers[1]}"
        values >"$run.rec"
        tf-ps status >"$run.status"
        tf-ps stop
    done
    [ "$(tf-ckpt list --json calm.ckpt | jq .step | paste -sd ' ')" = "190 200 210 220 230" ]
    grep -q ' step=230 ' calm.status
    grep -q ' step=230 ' killed.status
    cmp calm.rec killed.rec
    grep -q 'feed records passed over' w0.err
}

@test "a full disk keeps the checkpoint before, and says so" {
    mkdir small
    mount -t tmpfs -o size=3600k none small 2>/dev/null || skip "needs the right to mount"
    begin unix:pN --save small/ckpt --keep 50
    train
    tf-ps save small/ckpt
    local i
    status=0
    for ((i = 0; i < 20 && status == 0; i++)); do
        tf-ps get output/b >before.rec
        train
        run --separate-stderr tf-ps save small/ckpt
    done
    result=$status text=$stderr
    tf-ps restore small/ckpt
    tf-ps get output/b >after.rec
    tf-ckpt verify small/ckpt --data
    umount -l small # the shards are at home there
    [ "$result" -eq 74 ]
    [[ $text == *"No space left on device" ]]
    cmp before.rec after.rec
}

@test "what happens in a job, as lines for a shell" {
    printf 'task ps:0 unix:p0\ntask worker:0 unix:w0\n' >c
    tf-ps init -c c
    tf-ps watch --lease 0.5s >log 2>log.err 3>&- & watcher=$!
    pids+=("$watcher")
    soon 10 grep -qx 'waiting ps:0 why=not started' log
    serve 0
    soon 10 grep -qE '^ready ps:0 pid=[0-9]+ incarnation=1$' log
    tf-graph "$root/examples/digits.lua" | tf-opt | tf-place -c c | tf-part >parts.tfg
    mkfifo feeds
    tf-exec -g parts.tfg --task worker:0 --run train --fetch loss <feeds >run/worker-0.rec \
        2>run/worker-0.err 3>&- &
    pids+=($!)
    exec 8>feeds
    "$root/examples/feed" --rows 1-1437 --batch 64 --steps 20 >&8
    soon 10 grep -qE '^ready worker:0 pid=[0-9]+ incarnation=1$' log
    soon 10 grep -qE '^step 2?[0-9] loss=[0-9.e-]+ rate=[0-9]+ workers=[01]/1 late=0 stale=0$' log
    kill -STOP "$(cat run/ps-0.pid)"
    soon 10 grep -qE '^silent ps:0 [0-9.]+s pid=[0-9]+ incarnation=1 step=[0-9]+$' log
    kill -9 "$(cat run/ps-0.pid)"
    soon 10 grep -qE '^died ps:0 pid=[0-9]+ incarnation=1 step=[0-9]+$' log
    exec 8>&-
    soon 10 grep -qE '^left worker:0 step=[0-9]+$' log
    serve 0
    soon 10 grep -qE '^ready ps:0 pid=[0-9]+ incarnation=2$' log
    tf-ps stop
    soon 10 grep -qE '^left ps:0' log
    wait "$watcher"
    [ ! -s log.err ]
}
