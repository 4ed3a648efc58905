#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-run as its user meets it: errors found before anything starts, the owner of a directory, stop
# and status from another shell, feed commands and last checkpoints that are killed.
# shellcheck disable=SC2154,SC2030,SC2031  # variables of run; setup sets some for each test
load ../lib/tools

bats_require_minimum_version 1.5.0

setup_file() {
    use_tools
    cd "$BATS_FILE_TMPDIR" || return 1
    # every push adds a power of two: the sum tells which counted
    cat >sum.lua <<'LUA'
x = Placeholder{dtype = float32, name = "x", shape = {-1}}
a = variable{name = "a", shape = {16}, init = 0}
loss = Sum(a * -Mean(x, 0), 0)
entry.train = minimize(loss, optim.sgd{rate = 1})
LUA
    tf-graph sum.lua | tf-opt >sum.tfg
    local step
    for ((step = 0; step < 16; step++)); do
        tf-data csv <(echo $((1 << step))) x=1 >"$step.rec"
    done
    cat >feed <<'SH'
#!/bin/sh
# Eight records of this worker; in the middle of them it waits until the file $1 is there.
here=${0%/*}
echo $$ >"$1.${TF_SHARD%/*}.pid"
n=${TF_SHARD%/*}
while [ "$n" -lt 16 ]; do
    [ "$n" -lt 8 ] || until [ -e "$1" ]; do sleep 0.02; done
    cat "$here/$n.rec"
    n=$((n + 2))
done
SH
    chmod +x feed
}

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    export TMPDIR=$BATS_TEST_TMPDIR OMP_NUM_THREADS=1
    model=$BATS_FILE_TMPDIR/sum.tfg feed=$BATS_FILE_TMPDIR/feed go=$BATS_TEST_TMPDIR/go
}

teardown() {
    [ -z "${tf_run-}" ] || kill_pids "$tf_run"
    umount -l small 2>/dev/null || true
}

start() { # OPTION...: two workers, waiting halfway; sets tf_run
    setsid tf-run --workers 2 --threads 1 --mode async --fetch loss --lease 2s --timeout 20s \
        --job job "$@" "$model" -- "$feed" "$go" 2>err 3>&- &
    tf_run=$!
}

finish() { # sets code
    code=0
    wait "$tf_run" || code=$?
    tf_run=''
}

sum_of() { # CHECKPOINT
    tf-ckpt export "$1" sum.ckpt && tf-show --json sum.ckpt | jq -s 'map(select(.a).a[0])[0]'
}

@test "a feed command that is not there, or that is missing, is found before anything starts" {
    run --separate-stderr tf-run "$model" </dev/null
    [ "$status" -eq 64 ]
    [ "$stderr" = "tf-run: train is to be fed x; name the command that does: -- ./feed" ]
    run -127 --separate-stderr tf-run "$model" -- ./fed
    [ "$stderr" = "tf-run: ./fed: there is no such feed command" ]
    run -127 --separate-stderr tf-run "$model" -- fed 3
    run --separate-stderr tf-run "$model" -- "$model"
    [ "$status" -eq 126 ]
    [ -z "$(compgen -G 'tf-run.*')" ]
}

@test "two tf-run in one directory: the second names the first" {
    start
    soon 20 test -s job/worker-0.rec
    run --separate-stderr timeout 20 tf-run --job job "$model" -- "$feed" "$go"
    [ "$status" -eq 75 ]
    [ "$stderr" = "tf-run: job directory job: another tf-run (pid $tf_run) has it" ]
    touch "$go"
    finish
    [ "$code" -eq 0 ]
    # at the same moment
    local other one two
    tf-run --job both "$model" -- "$feed" "$go" 2>err.1 3>&- &
    other=$!
    code=0
    timeout 30 tf-run --job both "$model" -- "$feed" "$go" 2>err.2 3>&- || code=$?
    one=$code code=0
    wait "$other" || code=$?
    two=$code
    [ "$one $two" = "0 75" ] || [ "$one $two" = "75 0" ]
}

@test "a directory that cannot be written is 74" {
    mkdir -m 700 small
    mount -t tmpfs -o size=100k,mode=700 none small 2>/dev/null || skip "needs the right to mount"
    mount -o remount,ro small
    run --separate-stderr tf-run --job small "$model" -- "$feed" "$go"
    [ "$status" -eq 74 ]
    [[ $stderr == "tf-run: job directory small: lock: Read-only file system" ]]
}

@test "status and stop from another shell; tf-ps stop says who starts it again" {
    start --save ck/
    soon 20 test -s job/worker-0.rec
    tf-run status --json --job job | jq -e '.state == "running" and (.tasks | length) == 3'
    run --separate-stderr tf-ps stop --job job
    [ "$status" -eq 0 ]
    [[ $stderr == "tf-ps: tf-run supervises this job and "*"tf-run stop --job job"* ]]
    soon 20 grep -q 'ps:0 .*(restart 1 of 5)' err
    soon 20 test -s job/worker-0.rec
    tf-run stop --job job
    finish
    [ "$code" -eq 143 ]
    [ "$(tf-ckpt list --json ck | wc -l)" -ge 1 ]
    run --separate-stderr tf-run stop
    [ "$status" -eq 64 ]
}

@test "a feed command that is killed is started again, with its worker: each push counts once" {
    start --save ck/
    soon 20 test -s job/worker-1.rec
    kill -9 -- "-$(cat "$go.1.pid")" 2>/dev/null || kill -9 "$(cat "$go.1.pid")"
    soon 20 grep -q 'worker:1 .* lost its feed command (killed by signal 9)' err
    touch "$go"
    finish
    cat err
    [ "$code" -eq 0 ]
    [ "$(sum_of ck@16)" = 65535 ]
    [ -s job/worker-1.1.rec ]
    [ -z "$(compgen -G 'job/worker-?..rec')" ]
}

@test "a shard that dies while the last checkpoint is made: it is made again" {
    mkdir bin
    cat >bin/tf-ps <<EOF
#!/bin/sh
if [ "\$1" = save ] && mkdir once 2>/dev/null; then
    kill -9 "\$(cat job/ps-0.pid)"
fi
exec '$(command -v tf-ps)' "\$@"
EOF
    chmod +x bin/tf-ps
    touch "$go"
    cp "$(command -v tf-run)" bin/tf-run
    tools=$(dirname "$(command -v tf-exec)")
    ln -s "$(realpath "$tools/../lib")" lib
    PATH=$BATS_TEST_TMPDIR/bin:$tools:$PATH
    start --save ck/
    finish
    cat err
    [ "$code" -eq 0 ]
    [ -d once ]
    grep -Eq 'ps:0 .* killed by signal 9 at .*; nothing was saved: .*\(restart 1 of 5\)' err
    [ "$(sum_of ck@16)" = 65535 ]
}

@test "a checkpoint that fails while training goes on is told" {
    tf-ckpt init ck
    start --save ck/ --save-every 1 --keep 50
    soon 20 has_reached ck 4
    # a save between the two may have begun the store anew
    until mkdir ck/data.mdb 2>/dev/null; do mv ck/data.mdb away; done
    touch "$go"
    finish
    grep -Eq '^[0-9T:.-]+Z tf-run: ps:0: no checkpoint: .*ck' err
    [ "$code" -eq 74 ] # the last one fails as well
}

@test "--fetch-every writes as many records less; what an earlier job fetched is worker-0.0.rec" {
    touch "$go"
    start --fetch-every 4
    finish
    [ "$(tf-show job/worker-0.rec | awk '{ print $1, $2 }' | paste -sd' ')" = "step 4 step 8" ]
    start
    finish
    [ "$(tf-show job/worker-0.rec | wc -l)" -eq 8 ]
    [ "$(tf-show job/worker-0.0.rec | wc -l)" -eq 2 ]
}

@test "--fetch-limit keeps what a worker fetches small, and is for workers of this host" {
    cat >large.lua <<'LUA'
x = Placeholder{dtype = float32, name = "x", shape = {-1}}
a = variable{name = "a", shape = {16}, init = 0}
loss = Sum(a * -Mean(x, 0), 0)
many = Fill({5000}, loss)
entry.train = minimize(loss, optim.sgd{rate = 1})
LUA
    tf-graph large.lua >large.tfg
    model=large.tfg
    touch "$go"
    start --fetch many --fetch-limit 50k
    finish
    [ "$code" -eq 0 ]
    cat job/worker-0.old.rec job/worker-0.rec | tf-show >shown
    [ "$(tail -n 1 shown | awk '{ print $2 }')" -eq 8 ]
    [ "$(tf-show job/worker-0.rec | wc -l)" -lt 8 ]
    rm "$go" job/worker-0.old.rec
    start --fetch many --fetch-limit 50k
    soon 20 test -s job/worker-0.0.rec
    soon 20 test -s job/worker-0.rec
    kill -9 "$(cat job/worker-0.pid)"
    soon 20 grep -q 'worker:0 .*(restart 1 of' err
    touch "$go"
    finish
    [ "$code" -eq 0 ]
    [ "$(cd job && echo worker-0*.rec)" = "worker-0.0.rec worker-0.old.rec worker-0.rec" ]
    printf '%s\n' 'task ps:0 127.0.0.1:7300' 'task worker:0 127.0.0.9:7301' >far.cluster
    run --separate-stderr -78 tf-run -c far.cluster --no-key --fetch many --fetch-limit 50k \
        "$model" -- "$feed" "$go"
    [[ $stderr == "tf-run: --fetch-limit: worker:0 is on 127.0.0.9, "* ]]
}

@test "on a terminal the table of the end begins a line of its own" {
    has_terminal
    (sleep 1 && touch "$go") 3>&- &
    script -qec "tf-run --mode async --threads 1 --fetch loss '$model' -- '$feed' '$go'" \
        /dev/null </dev/null >out
    # what stood on the line is wiped before
    grep -a TASK out | tr '\r' '\n' | sed 's/\x1b\[[0-9;]*[A-Za-z]//g' | finds '^TASK '
}

@test "INT, TERM and kill -9 of every process of a job at random moments" {
    "$root/tests/chaos/signals" "${SIGNALS:-8}"
}
