#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Runs that are asked to end, or killed, at any moment from their start on, and resume: saved
# checkpoints stay as they were, and the final bits equal those of an undisturbed run.
# PREEMPTIONS=N: number of random ends of a resumed run; JOB_PREEMPTIONS=N: of jobs of each mode.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools

bats_require_minimum_version 1.5.0

nothing='interrupted before a step was run; nothing saved'

setup_file() {
    use_tools
    export OMP_NUM_THREADS=1
    cd "$BATS_FILE_TMPDIR" || return 1
    # v moves a third of the way to x, so its value depends on every step and on their order
    cat >m.txt <<'TEXT'
entry init = ^set
entry step = ^move
x = Placeholder() {dtype=float32, shape=[1]}
v = Variable() {dtype=float32, shape=[1]}
zero = Const() {dtype=float32, value=[0]}
third = Const() {dtype=float32, value=0.333}
set = Assign(v, zero)
way = Sub(x, v)
part = Mul(way, third)
move = AssignAdd(v, part)
TEXT
    tf-graph --text m.txt >m.tfg
    awk 'BEGIN { srand(3); for (i = 0; i < 60; i++) print rand() }' >x.csv
    for n in 10 20 60; do
        head -n $n x.csv | tf-data csv - x=1 --batch 1 >$n.rec
        tf-exec -g m.tfg --run step --feed $n.rec --fetch move --save whole/ --resume -q >$n.out
    done
    [ "$(steps_of whole)" = "10 20 60" ]
    # the values of each step, and its feeds
    tf-exec -g m.tfg --run step --feed 60.rec --fetch move -q | tf-show --json |
        jq -c '.move[0]' >values
    for ((n = 1; n <= 60; n++)); do
        sed -n ${n}p x.csv | tf-data csv - x=1 --batch 1 >r-$n.rec
    done
}

teardown() {
    kill_job job
}

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    ln -s "$BATS_FILE_TMPDIR"/* .
}

steps_of() { # STORE
    tf-ckpt list --json "$1" | jq -r .step | xargs
}

# A store with step 20, and its listing.
resumable() {
    rm -rf ck
    tf-ckpt init ck
    tf-ckpt copy whole@20 ck
    tf-ckpt show --json ck >ck.json
    tf-ckpt list --json ck >>ck.json
}

is_untouched() {
    { tf-ckpt show --json ck && tf-ckpt list --json ck; } | cmp - ck.json
}

# begin RECORDS OPTION...: starts a run that gets so many records, and waits for more; $! is its
# pid.
begin() {
    rm -f feeds err
    mkfifo feeds
    exec 4<>feeds
    tf-exec -g m.tfg --run step --feed feeds --fetch move "${@:2}" 2>err >out 3>&- 4<&- &
    [ "$1" = 0 ] || cat "$1.rec" >feeds
}

# Asks it to end, and it ends.
ask_to_end() { # SIGNAL
    local code=0
    kill "-$1" $!
    wait $! || code=$?
    exec 4>&-
    [ "$code" -eq $((128 + $(kill -l "$1"))) ]
}

waits() { # PID [FILE]: it does nothing, and has the file open
    [ $# -eq 1 ] || readlink /proc/"$1"/fd/* | finds "/$2$" || return
    [ "$(awk '{print $3}' /proc/"$1"/stat)" = S ] && sleep 0.1 &&
        [ "$(awk '{print $3}' /proc/"$1"/stat)" = S ]
}

@test "a resumed run that is asked to end before its first step leaves the store as it was" {
    resumable
    local signal records
    for signal in TERM INT; do # two preemptions in a row
        for records in 0 10 20; do
            begin $records --save ck/ --resume
            if [ $records = 20 ]; then
                soon 20 grep -q 'resumed at step 20; 20 feed records passed over' err
            else
                soon 20 waits $! feeds
            fi
            ask_to_end $signal
            [ "$(tail -n 1 err)" = "tf-exec: m.tfg: $nothing" ]
            is_untouched
        done
    done
    tf-exec -g m.tfg --run step --feed 60.rec --save ck/ --resume -q
    tf-ckpt diff whole@60 ck@60
}

@test "a run that is asked to end before its first step saves nothing" {
    begin 0 --save new/
    soon 20 test -e new/data.mdb
    ask_to_end TERM
    [ -z "$(tf-ckpt list --json new)" ]

    tf-exec -g m.tfg --run step --feed 20.rec --save x.ckpt -q >/dev/null
    cp x.ckpt kept.ckpt
    begin 0 --save x.ckpt --restore x.ckpt
    soon 20 waits $! feeds
    ask_to_end INT
    cmp x.ckpt kept.ckpt

    # before it has read its graph
    mkfifo graph
    exec 5<>graph
    tf-exec --run step --feed 20.rec --save never/ 2>err 3>&- 5<&- <graph &
    soon 20 waits $! graph
    sleep 0.2
    kill -TERM $!
    wait $! || [ $? -eq 143 ]
    exec 5>&-
    [ "$(cat err)" = "tf-exec: stdin: $nothing" ]
    [ ! -e never ]
}

@test "what no step changed is saved where the run ends by itself" {
    tf-exec -g m.tfg --run step --feed 60.rec --restore whole@20 --steps 0 --save zero/
    [ "$(steps_of zero)" = 0 ]
    tf-ckpt diff whole@20 zero
}

# All 60 records, with a pause somewhere.
feed_slowly() {
    local n pause=$((RANDOM % 60 + 1))
    for ((n = 1; n <= 60; n++)); do
        cat r-$n.rec
        [ $n -ne $pause ] || sleep 0.1
    done
}

# A checkpoint has the values of its step.
holds() { # STEP
    [ "$(tf-ckpt cat "ck@$1" v | tf-show --json | jq -c '.v[0]')" = \
        "$(sed -n "$1p" values)" ]
}

# resume SIGNAL SECONDS: a run that gets the signal after that time, or has ended before
resume() {
    { feed_slowly 2>/dev/null | timeout --foreground -s "$1" "$2" \
        tf-exec -g m.tfg --run step --feed - --fetch move --save ck/ --save-every 13 --resume \
        -q >/dev/null 2>err; } 2>/dev/null || true
}

# job EPOCHS COMMAND OPTION...: sets `line` to a job of two workers, 10 steps an epoch; COMMAND
# comes after the feeds
job() {
    local epochs=$1 after=$2
    shift 2
    line=(timeout -k 5 60 tf-run --workers 2 "$@" --fetch loss --job job -q digits.tfg -- sh -c
        "./feed --rows 1-640 --shuffle --batch 32 --epochs $epochs && $after")
}

train() {
    job "$@"
    "${line[@]}" 3>&-
}

# Its workers have got all their records.
has_begun() {
    local pid
    for pid in $(cat job/worker-0.pid) $(cat job/worker-1.pid); do waits "$pid" || return; done
}

@test "jobs that are asked to end before their first step leave the checkpoint what it was" {
    local mode i code
    cp -r "$root/examples/"{digits.lua,feed,data} .
    tf-graph digits.lua | tf-opt >digits.tfg
    for mode in '--mode allreduce' '--ps 2'; do
        rm -rf one two
        # shellcheck disable=SC2086
        train 4 true $mode --save one/
        # shellcheck disable=SC2086
        train 2 true $mode --save two/
        for ((i = 0; i < 2; i++)); do # two preemptions in a row, while records are passed over
            rm -rf job
            tf-ckpt list --json two | jq 'del(.saved, .new_bytes)' >listed
            # shellcheck disable=SC2086
            job 1 'sleep 100' $mode --save two/ --resume
            "${line[@]}" 2>err 3>&- &
            soon 30 test -s job/worker-1.pid
            soon 30 has_begun
            sleep 0.3
            kill -TERM $!
            code=0
            wait $! || code=$?
            [ $code -eq 143 ]
            tf-ckpt list --json two | jq 'del(.saved, .new_bytes)' | diff listed -
        done
        # shellcheck disable=SC2086
        train 4 true $mode --save two/ --resume
        tf-ckpt diff one@40 two@40
    done
}

# slow_job OPTION...: sets `line` to a job of two workers whose 40 steps come five at a time
slow_job() {
    line=(timeout -k 5 60 tf-run --workers 2 "$@" --fetch loss --job job -q digits.tfg -- sh -c
        'for n in 1 2 3 4 5 6 7 8; do
            ./feed --rows 1-320 --shuffle --batch 32 --epochs 1 && sleep 0.1 || exit
        done')
}

# No process of the job is left, so that the next one gets its directory.
is_over() {
    [ ! -e job/lock ] || flock -n job/lock true
}

# One of the job's processes.
random_task() {
    local files=(job/*.pid) file
    file=${files[RANDOM % ${#files[@]}]}
    [ ! -s "$file" ] || cat "$file"
}

# Starts the job, which takes `took` ms, and hits it at a random moment, in one of the ways in
# `signals`: it is asked to end, or killed, or one of its tasks is killed, which the job survives.
# Sets code.
hit_job() {
    local pid moment signal
    signal=${signals[RANDOM % ${#signals[@]}]}
    # without its timeout; a shell's children in the background would ignore INT
    env --default-signal=INT "${line[@]:4}" >out 2>err 3>&- &
    pid=$!
    moment=$((RANDOM % took))
    sleep "$((moment / 1000)).$(printf '%03d' $((moment % 1000)))"
    if [ "$signal" = TASK ]; then
        kill -9 "$(random_task)" 2>/dev/null || true
    else
        kill "-$signal" "$pid" 2>/dev/null || true
    fi
    code=0
    wait "$pid" || code=$?
    soon 30 is_over
    case $signal.$code in
    *.0 | TERM.143 | INT.130 | KILL.137) ;;
    *) echo "$signal: ended with $code: $(cat err)" && return 1 ;;
    esac
}

# hit_jobs OPTION...: a job that resumes after each hit; whenever it ends, it has the bits of an
# undisturbed job, and begins anew
hit_jobs() {
    local i code took
    rm -rf whole.job job ck
    took=$(date +%s%3N)
    slow_job "$@" --save whole.job/
    "${line[@]}" 3>&-
    took=$(($(date +%s%3N) - took))
    slow_job "$@" --save ck/ --save-every 7 --resume
    for ((i = 0; i < ${JOB_PREEMPTIONS:-3}; i++)); do
        hit_job
        [ "$code" -eq 0 ] || continue
        tf-ckpt diff whole.job@40 ck@40
        rm -rf ck
    done
    "${line[@]}" 3>&-
    tf-ckpt diff whole.job@40 ck@40
}

# While workers leave one after the other, the remaining ones go on: no checkpoint of such a round
# may be resumed from, even if one would be due.
@test "a job with shards that is asked to end goes on from what all of its workers did" {
    local code reached
    cp -r "$root/examples/"{digits.lua,feed,data} .
    tf-graph digits.lua | tf-opt >digits.tfg
    slow_job --ps 2 --save one/
    "${line[@]}" 3>&-
    slow_job --ps 2 --save two/ --save-every 1 --keep 100 --resume
    for reached in 3 12 21 30; do
        "${line[@]}" 2>err 3>&- &
        soon 30 has_reached two "$reached"
        kill -TERM $!
        code=0
        wait $! || code=$?
        ((code == 143 || code == 0)) # it may have been done
    done
    "${line[@]}" 3>&-
    tf-ckpt diff one@40 two@40
}

@test "jobs with shards that are hit at any moment come to the bits of one that was not" {
    cp -r "$root/examples/"{digits.lua,feed,data} .
    tf-graph digits.lua | tf-opt >digits.tfg
    local signals=(TERM INT KILL TASK)
    hit_jobs --ps 2
}

@test "jobs without shards that are hit at any moment come to the bits of one that was not" {
    cp -r "$root/examples/"{digits.lua,feed,data} .
    tf-graph digits.lua | tf-opt >digits.tfg
    local signals=(TERM INT KILL TASK)
    hit_jobs --mode allreduce
}

@test "runs that end at any moment, by signals or kills, come to the bits of one that never did" {
    local i step signals=(TERM INT KILL)
    resumable
    for ((i = 0; i < ${PREEMPTIONS:-8}; i++)); do
        resume "${signals[RANDOM % 3]}" "$(printf '0.%03d' $((RANDOM % 330 + 20)))"
        step=$(tf-ckpt list --json ck | tail -n 1 | jq .step)
        holds "$step" || { echo "step $step is another's: $(cat err)" && false; }
        [ "$step" -eq 60 ] || continue # else it goes on from there
        for step in $(steps_of ck); do holds "$step"; done
        tf-ckpt diff whole@60 ck@60
        resumable
    done
}
