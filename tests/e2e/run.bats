#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-run: whole jobs on this machine, in every mode, with processes killed on the way.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup_file() {
    use_tools
    cp -r "$root/examples/." "$BATS_FILE_TMPDIR"
    cd "$BATS_FILE_TMPDIR" || return 1
    tf-graph digits.lua | tf-opt >digits.tfg
    tf-place digits.tfg >one.tfg
    feed=(./feed)
    # the result of an undisturbed run of 460 rounds, for comparison
    train 2 2 20 --save whole/ digits.tfg
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return 1
    export TMPDIR=$BATS_TEST_TMPDIR
    job=$BATS_TEST_TMPDIR/job
    go=$BATS_TEST_TMPDIR/go
    feed=(./feed)
}

teardown() {
    kill_job "$BATS_TEST_TMPDIR/job"
}

# job SHARDS WORKERS EPOCHS OPTION...: a command line; the workers' batches together have 64 rows
job() {
    local shards=$1 workers=$2 epochs=$3
    shift 3
    line=(timeout -k 5 120 tf-run --ps "$shards" --workers "$workers" --fetch loss "$@"
        -- "${feed[@]}" --rows 1-1437 --shuffle --batch "$((64 / workers))" --epochs "$epochs")
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

variables() { # CHECKPOINT: a line each; how often a worker was started is the clock's to remember
    tf-ckpt export "$1" "$BATS_TEST_TMPDIR/values.ckpt"
    tf-show --json "$BATS_TEST_TMPDIR/values.ckpt" | grep -v '^{"clock:' | sort
}

same_bits() { # CHECKPOINT CHECKPOINT
    variables "$1" >"$BATS_TEST_TMPDIR/one"
    variables "$2" >"$BATS_TEST_TMPDIR/other"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/one")" -ge 14 ]
    diff "$BATS_TEST_TMPDIR/one" "$BATS_TEST_TMPDIR/other"
}

accuracy() { # FOLDER: of the newest checkpoint, on images that were not trained on
    ./feed --rows 1438- --batch 360 | tf-exec -g one.tfg --run eval --restore "$1" |
        tf-show | sed -n 's/^step 1  accuracy //p'
}

says() { # LINE RESTART: the line is there, N being numbers
    grep -E "^[0-9T:.-]+Z tf-run: ${1//N/[0-9]+} \(restart $2 of 5\)$" err
}

is_good() { # ACCURACY
    awk -v a="$1" 'BEGIN { exit !(a >= 0.95) }'
}

@test "two shards, two workers: the table says how it went, the directory holds the rest" {
    run --separate-stderr train 2 2 20 --job "$job" digits.tfg
    [ "$status" -eq 0 ]
    [[ $stderr =~ worker:1\ +[0-9]+\ +460\ +460\ +0\ +0\ +done ]]
    [[ $stderr =~ ps:1\ +[0-9]+\ +-\ +-\ +-\ +0\ +done ]]
    local time='^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z '
    ended="${time}tf-run: ended after step 460, loss=.*; nothing is kept"
    [[ ${stderr##*$'\n'} =~ $ended ]]
    grep -E "${time}tf-ps: ps:0: ready on " "$job/ps-0.err"
    run -1 grep -hvE "$time" "$job"/*.err # each line has its time
    [ "$(tf-show "$job/worker-1.rec" | tail -1 | cut -c1-9)" = "step 460 " ]
    [ ! -e "$job/ps-0.sock" ] && [ ! -e "$job/lifeline" ] && [ ! -e "$job/key" ]
}

@test "modes: as good as one process" {
    local mode
    for mode in async ssp,bound=3 sync,backup=1; do
        train 2 2 20 --mode "$mode" --save "$BATS_TEST_TMPDIR/$mode/" digits.tfg
        is_good "$(accuracy "$BATS_TEST_TMPDIR/$mode")"
    done
    is_good "$(accuracy whole)"
}

@test "a worker is killed: it is started again and the bits are those of an undisturbed run" {
    start 2 2 20 --save "$BATS_TEST_TMPDIR/ck/" --job "$job" digits.tfg
    local tf_run=$!
    soon 30 test -s "$job/worker-1.rec"
    kill -9 "$(cat "$job/worker-1.pid")"
    soon 30 says 'worker:1 .*' 1
    touch "$go"
    wait "$tf_run"
    says 'worker:1 \(pid N\) killed by signal 9 at step N; started again as incarnation 2' 1
    same_bits whole@460 "$BATS_TEST_TMPDIR/ck@460"
}

@test "a shard is killed: back to the newest checkpoint, and on with the same bits" {
    start 2 2 20 --save "$BATS_TEST_TMPDIR/ck/" --save-every 20 --job "$job" digits.tfg
    local tf_run=$!
    soon 30 has_reached "$BATS_TEST_TMPDIR/ck" 20
    kill -9 "$(cat "$job/ps-1.pid")"
    soon 30 says 'ps:1 .*' 1
    touch "$go"
    wait "$tf_run"
    says 'ps:1 \(pid N\) killed by signal 9 at step N; restored from .*ck@N, N steps to repeat' 1
    same_bits whole@460 "$BATS_TEST_TMPDIR/ck@460"
}

# A freed port goes to the first that asks: a job must not count on ports that it once had.
squat() { # PORT: takes it as soon as it is free, and says so
    /usr/bin/python3 - "$1" 3>&- <<'PY' &
import socket, sys, time
while True:
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        one.bind(("127.0.0.1", int(sys.argv[1])))
        break
    except OSError:
        time.sleep(0.001)
one.listen()
open("squats", "w").close()
time.sleep(60)
PY
    squatter=$!
}

@test "a shard is killed and its port taken: it gets another one" {
    printf 'task %s 127.0.0.1:0\n' ps:0 worker:0 >"$BATS_TEST_TMPDIR/cluster"
    rm -f squats
    timeout -k 5 120 tf-run -c "$BATS_TEST_TMPDIR/cluster" --save "$BATS_TEST_TMPDIR/ck/" \
        --save-every 5 --job "$job" digits.tfg 2>err 3>&- -- "$root/tests/lib/halfway" "$go" \
        ./feed --rows 1-1437 --batch 64 &
    local tf_run=$! port
    soon 30 has_reached "$BATS_TEST_TMPDIR/ck" 5
    port=$(sed -n 's/^task ps:0 127.0.0.1:\([0-9]*\).*/\1/p' "$job/cluster")
    squat "$port"
    sleep 0.5 # the interpreter starts
    kill -9 "$(cat "$job/ps-0.pid")"
    soon 30 says 'ps:0 .*' 1
    touch "$go"
    wait "$tf_run"
    test -e squats
    kill "$squatter"
    tf-ckpt show "$BATS_TEST_TMPDIR/ck@23"
}

# Five starts without pauses would be over before that.
@test "a shard whose place to listen is gone for six seconds starts in the end" {
    local there=$BATS_TEST_TMPDIR/there
    mkdir "$there"
    printf 'task %s unix:%s\n' ps:0 "$there/p" worker:0 w >cluster
    start 0 1 5 -c cluster --job "$job" digits.tfg
    local tf_run=$!
    soon 30 test -s "$job/worker-0.rec"
    mv "$there" "$there.away"
    kill -9 "$(cat "$job/ps-0.pid")"
    sleep 6
    mv "$there.away" "$there"
    touch "$go"
    wait "$tf_run"
    why='.*there/p: No such file or directory\) .*\(restart [34] of 5\)$'
    grep -E "^[0-9T:.-]+Z tf-run: ps:0 $why" err
}

@test "a worker that is frozen is found by its lease, killed and started again" {
    start 2 2 20 --save "$BATS_TEST_TMPDIR/ck/" --lease 1s --job "$job" digits.tfg
    local tf_run=$!
    soon 30 test -s "$job/worker-1.rec"
    kill -STOP "$(cat "$job/worker-1.pid")"
    soon 30 says 'worker:1 .*' 1
    touch "$go"
    wait "$tf_run"
    says 'worker:1 \(pid N\) silent for N.N s at step N; killed, started again as incarnation 2' 1
    same_bits whole@460 "$BATS_TEST_TMPDIR/ck@460"
}

@test "values to begin with come from what another job has saved, or a step of it" {
    train 2 1 1 --restore whole --run eval --fetch accuracy --steps 1 --job "$job" digits.tfg
    tf-show "$job/worker-0.rec" >from
    ./feed --rows 1-1437 --shuffle --batch 64 --epochs 1 --steps 1 |
        tf-exec -g one.tfg --run eval --fetch loss,accuracy --restore whole@460 | tf-show |
        diff - from
    run --separate-stderr tf-exec -g one.tfg --run eval --restore whole@7
    [ "$status" -eq 66 ]
    [ "$stderr" = "tf-exec: whole@7: there is no checkpoint of this step" ]
}

@test "TERM saves; the same command with --resume goes on to the same bits" {
    start 2 2 20 --save "$BATS_TEST_TMPDIR/ck/" --job "$job" digits.tfg
    local tf_run=$!
    soon 30 test -s "$job/worker-1.rec"
    kill -TERM "$tf_run"
    local code=0
    wait "$tf_run" || code=$?
    cat err
    [ "$code" -eq 143 ]
    run -66 tf-ckpt show "$BATS_TEST_TMPDIR/ck@460"
    [ "$(tf-ckpt list --json "$BATS_TEST_TMPDIR/ck" | wc -l)" -gt 0 ]
    feed=(./feed)
    train 2 2 20 --save "$BATS_TEST_TMPDIR/ck/" --resume --job "$job" digits.tfg
    same_bits whole@460 "$BATS_TEST_TMPDIR/ck@460"
}

@test "kill -9 of tf-run leaves no process and no temporary directory" {
    tf-run --ps 1 --workers 1 digits.tfg 2>/dev/null 3>&- \
        -- ./feed --rows 1-1437 --batch 64 --epochs 2000 &
    local tf_run=$! folder
    soon 30 compgen -G "$TMPDIR/tf-run.*/worker-0.pid"
    folder=$(compgen -G "$TMPDIR/tf-run.*")
    kill -9 "$tf_run"
    soon 10 test ! -e "$folder"
    run pgrep -f -- "--job $folder"
    [ "$status" -eq 1 ]
}

nobody_has_the_job() {
    ! pgrep -f -- "--job $job"
}

@test "what feeds a worker ends with it, even if it only waits" {
    local waits='./feed --rows 1-1437 --batch 64; echo $$ >>"$TMPDIR/waiting"; exec sleep 600'
    timeout -k 5 60 tf-run --ps 1 --workers 1 --steps 10 digits.tfg 2>/dev/null 3>&- \
        -- sh -c "$waits"
    rm -f "$TMPDIR/waiting"
    tf-run --ps 1 --workers 1 --job "$job" digits.tfg 2>err 3>&- -- sh -c "$waits" &
    local tf_run=$!
    soon 30 test -s "$TMPDIR/waiting" || { cat err "$job"/*.err; return 1; }
    kill -9 "$tf_run"
    while read -r pid; do
        soon 10 sh -c "! kill -0 $pid 2>/dev/null"
    done <"$TMPDIR/waiting"
    # and with all processes of tf-run, as timeout does it
    rm "$TMPDIR/waiting"
    setsid tf-run --ps 1 --workers 1 --job "$job.2" digits.tfg 2>err 3>&- -- sh -c "$waits" &
    tf_run=$!
    soon 30 test -s "$TMPDIR/waiting"
    kill -9 -- "-$tf_run"
    while read -r pid; do
        soon 10 sh -c "! kill -0 $pid 2>/dev/null"
    done <"$TMPDIR/waiting"
    soon 10 nobody_has_the_job
}

@test "a worker that cannot work ends the job with its code and its line" {
    run --separate-stderr timeout 60 tf-run --ps 1 --workers 2 digits.tfg 3>&- \
        -- ./feed --rows 1-1437 --batch 64 --epochs nonsense
    [ "$status" -eq 64 ]
    [[ $stderr == *nonsense* ]]
}

@test "a worker has the share of the cores that tf-run may use, of one at least" {
    local core
    core=$(taskset -cp $BASHPID | sed 's/.*: //; s/[-,].*//')
    taskset -c "$core" tf-run --ps 1 --workers 1 --dry-run --job "$job" digits.tfg \
        -- ./feed >commands
    grep -q "'--threads' '1'" commands
    [ "$(taskset -c "$core" tf-supervise --cores)" = 1 ]
    [ "$(tf-supervise --cores)" -le "$(nproc)" ]
    tf-run --ps 1 --workers 1 --dry-run --job "$job" digits.tfg -- ./feed >commands
    grep -q "'--threads' '$(tf-supervise --cores)'" commands
    tf-run --ps 1 --workers 1000 --dry-run --job "$job" digits.tfg -- ./feed >commands
    grep -q "'--threads' '1'" commands
}

@test "--dry-run prints the commands, which work when they are typed" {
    train 1 1 1 --dry-run --job "$job" digits.tfg >commands
    grep -q "tf-ps.*serve.*ps:0" commands
    grep tf-ps commands | sh 3>&- &
    soon 20 test -s "$job/ps-0.pid"
    grep tf-exec commands | sh 3>&- | tf-show | tail -1 >last
    kill "$(cat "$job/ps-0.pid")"
    grep -q '^step 23 ' last
}

@test "the words of the feed command are those that were typed" {
    local words=(printf '%s|' "it's" 'two  words' '' --ps '$HOME' $'a\nb' '*') text
    tf-run --dry-run --job "$job" digits.tfg -- "${words[@]}" >commands
    text=$(<commands)
    text=${text#*"(TF_SHARD"}
    text="(TF_SHARD${text%%") | 'tf-exec'"*})"
    [ "$(eval "$text")" = "$("${words[@]}")" ]
}

@test "bad input" {
    fails() { # STATUS TEXT OPTION...
        local status_wanted=$1 text=$2
        shift 2
        run --separate-stderr tf-run "$@" </dev/null
        [ "$status" -eq "$status_wanted" ] && [[ $stderr == *"$text"* ]]
    }
    fails 64 "unknown option '--wrokers'; did you mean --workers?" --wrokers 2 digits.tfg
    fails 64 "--workers 0: at least 1" --job none --workers 0 digits.tfg
    fails 64 "--workers 100000: at most 4096" --job none --workers 100000 digits.tfg
    fails 64 "--ps 100000: at most 4096" --job none --ps 100000 digits.tfg
    fails 64 "--replica-tasks 0: at least 1" --job none --replica-tasks 0 digits.tfg
    fails 64 "--mode auto is tf-replicate's" --mode auto digits.tfg
    fails 64 "--workers: 'x' is not a whole number" --workers x digits.tfg
    TF_LEASE=long fails 64 "TF_LEASE: 'long' is not a time" digits.tfg
    fails 64 "--max-restarts 5/x: a number up to 1000000" --max-restarts 5/x digits.tfg
    fails 64 "--max-restarts 1000001: a number" --job none --max-restarts 1000001 digits.tfg
    fails 64 "extra operand 'two.tfg'" digits.tfg two.tfg
    fails 64 "--save ck: a folder is wanted" --save ck digits.tfg
    fails 66 "nothing.tfg" nothing.tfg
    fails 66 "nothing.tfg" --save '' --restore '' --mode '' --run-name '' nothing.tfg
    fails 66 "nothing.cluster" -c nothing.cluster digits.tfg
    printf '%s\n' 'task ps:0 unix:a' 'task worker:0 unix:b' 'link ps:0 wroker:0 latency=1ms' \
        >wrong.cluster
    fails 78 "tf-ps: wrong.cluster: a link of wroker:0" -c wrong.cluster digits.tfg
    openssl rand -hex 32 >open.key
    chmod 640 open.key
    fails 77 "open.key: others may read this key; chmod 600 it" --key-file open.key digits.tfg
    fails 64 "mode" --mode nonsense digits.tfg
    fails 66 "tf-run: --restore lost: no store there" --job none --restore lost digits.tfg
    fails 64 "--threads 5000: at most 4096" --job none --threads 5000 digits.tfg
    fails 64 "--fetch-every 0: at least 1" --job none --fetch loss --fetch-every 0 digits.tfg
    fails 64 "--fetch-limit 2048: at least 4096" --job none --fetch loss --fetch-limit 2k \
        digits.tfg
    [ ! -e none ] # nothing was started
}

@test "what is run, fetched and evaluated is looked for first, in the graph that was given" {
    fails() { # WHAT OPTION...
        local what=$1 file
        shift
        for file in digits.tfg -; do
            run -65 --separate-stderr tf-run --job "$job" "$@" "$file" -- false <digits.tfg
            [[ $stderr == "tf-run: ${file/#-/stdin}: "*"there is no $what 'nope'"* ]]
            [ ! -e "$job/ps-0.err" ]
            [ ! -e "$job/worker-0.err" ]
        done
    }
    fails 'entry or node' --run nope
    fails node --fetch loss,nope
    fails node --mode allreduce --workers 2 --fetch nope
    : >"$BATS_TEST_TMPDIR/x.rec"
    fails 'entry or node' --eval nope --eval-feed "$BATS_TEST_TMPDIR/x.rec" --save ck/
}

@test "where workers fetch nothing the last line has the step of what is kept, or none" {
    cat >m.lua <<'LUA'
local w = variable{name = "w", shape = {}, init = 3.0}
entry.train = minimize(w * w, optim.sgd{rate = 0.1})
LUA
    tf-graph m.lua >m.tfg
    run --separate-stderr tf-run --workers 2 --mode allreduce --steps 7 --save s/ m.tfg
    finds ' tf-run: ended after step 7; s@7 is kept$' <<<"${stderr##*$'\n'}"
    run --separate-stderr tf-run --workers 2 --mode allreduce --steps 7 m.tfg
    finds ' tf-run: ended; nothing is kept, as there was no --save$' <<<"${stderr##*$'\n'}"
}
