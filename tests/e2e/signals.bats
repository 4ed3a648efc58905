#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Every program in every state of its life is sent every signal that asks it to end: a table of
# roles and states. If a program is in a state for a moment only, a failpoint stops it there, so
# that the signal arrives in that state. SIGNALS=all: each signal in each state.
# shellcheck disable=SC2030,SC2031  # each test is a process of its own
load ../lib/tools

bats_require_minimum_version 1.5.0

setup_file() {
    use_tools
    export OMP_NUM_THREADS=1
    cd "$BATS_FILE_TMPDIR" || return 1
    cat >m.txt <<'TEXT'
entry init = ^set
entry step = ^move
x = Placeholder() {dtype=float32, shape=[1]}
v = Variable() {dtype=float32, shape=[1]}
zero = Const() {dtype=float32, value=[0]}
set = Assign(v, zero)
move = AssignAdd(v, x)
TEXT
    tf-graph --text m.txt >m.tfg
    printf '1\n2\n3\n' | tf-data csv - x=1 --batch 1 >f.rec
    cat >net.lua <<'LUA'
local x = Placeholder{dtype=float32, shape={-1}, name="x"}
local w = variable{name="w", shape={}, init=0.5}
loss = Mean(Square(x * w - 1), 0)
entry.train = minimize(loss, optim.sgd{rate=0.01})
LUA
    tf-graph net.lua >net.tfg
    parts sync 'ps:0 worker:0'
    parts allreduce 'worker:0 worker:1'
}

# A feed that has rows until nobody reads it
endless() {
    yes 1 3>&- | tf-data csv - x=1 --batch 1 3>&-
}

# parts MODE TASKS [NAME [GRAPH]]: makes NAME.tfg of the net, and its cluster, NAME.cluster
parts() {
    local task name=${3-$1}
    for task in $2; do echo "task $task unix:${task/:/-}"; done >"$name.cluster"
    tf-replicate -q -c "$name.cluster" --mode "$1" "${4-net.tfg}" | tf-place -q -c "$name.cluster" |
        tf-part -q -c "$name.cluster" >"$name.tfg"
}

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    ln -s "$BATS_FILE_TMPDIR"/* .
    pids=()
    turn=$BATS_TEST_NUMBER
}

teardown() {
    kill_pids "${pids[@]}"
    kill_job job
}

# begin COMMAND...: runs it in the background, as a shell with jobs does; its pid is in pid
begin() {
    begin_to out "$@"
}

begin_to() { # FILE COMMAND...
    rm -f err # of who was before
    state=none
    env --default-signal=INT,HUP "${@:2}" <&0 >"$1" 2>err 3>&- &
    pid=$!
    pids+=("$pid")
}

waits() { # PID: for something
    is_in S "$1" && sleep 0.2 && is_in S "$1"
}

is_in() { # STATE PID...: as ps has them
    local state=$1 one
    shift
    for one in "$@"; do [ "$(awk '{print $3}' "/proc/$one/stat")" = "$state" ] || return; done
}

# begin_at POINT COMMAND...: waits until it has stopped there. POINT is NAME or NAME:NTH
begin_at() {
    local point=$1
    case $point in *:*) ;; *) point=$point:1 ;; esac
    begin env TF_FAILPOINTS="$point:stop" "${@:2}"
    state=${1%%:*}
    soon 20 is_in T "$pid" || { cat err && return 1; }
}

# Runs beside the program to be hit; its pid is in other
beside() { # FILE COMMAND...
    rm -f "$1" # of who was before
    env "${@:2}" >/dev/null 2>"$1" 3>&- &
    other=$!
    pids+=("$other")
}

# A signal that arrives while it is stopped in a table's state is a cell of that table: see the last
# test
meets() { # SIGNAL STATE
    echo "$2 $1" >>"$BATS_FILE_TMPDIR/cells"
}

# Lets it go on and end: its exit code is in code
goes_on() {
    kill -CONT "$pid" 2>/dev/null || true # it may be gone
    code=0
    wait "$pid" || code=$?
}

hit() { # SIGNAL
    kill "-$1" "$pid" || { cat err && return 1; }
    goes_on
    meets "$1" "$state"
}

ends_by() { # SIGNAL
    hit "$1"
    [ "$code" -eq $((128 + $(kill -l "$1"))) ] || { echo "$1: $code: $(cat err)" && return 1; }
    [ -z "$(find . -name '*.tmp*')" ]
}

# Sets signals: to all of them with SIGNALS=all, else to the next one in turn.
take_signals() {
    local all=(TERM INT HUP)
    signals=${all[*]}
    if [ "${SIGNALS-}" != all ]; then
        signals=${all[turn % 3]}
        turn=$((turn + 1))
    fi
}

steps_of() { # STORE
    [ ! -e "$1/data.mdb" ] || tf-ckpt list --json "$1" | jq -r .step | xargs
}

@test "a run of one process, in each of its states" {
    local point steps said signal
    while read -r point steps said; do
        take_signals
        for signal in $signals; do
            rm -rf ck
            begin_at "$point" tf-exec -g m.tfg --run step --feed f.rec --fetch move --save ck/
            ends_by "$signal"
            [ "$(steps_of ck)" = "${steps#-}" ]
            [ "$(tail -n 1 err)" = "tf-exec: ${said:+m.tfg: }$said" ] ||
                [ "$(tail -n 1 err)" = "tf-exec: m.tfg: $said" ]
        done
    done <<'TABLE'
exec.reads   - interrupted before a step was run; nothing saved
exec.opens   - interrupted before a step was run; nothing saved
exec.starts  - interrupted before a step was run; nothing saved
exec.feeds   - interrupted before a step was run; nothing saved
exec.feeds:2 1 interrupted after step 1
exec.steps   1 interrupted after step 1
exec.steps:2 2 interrupted after step 2
exec.ends    3 interrupted after step 3
TABLE
    take_signals
    for signal in $signals; do # all is done
        begin_at exec.gone tf-exec -g m.tfg --run step --feed f.rec --save ck/ --resume
        hit "$signal"
        [ "$code" -eq 0 ]
    done
}

# serves TASK MODE: a shard, or a task that serves
serves() {
    local command=(tf-ps serve)
    case $1 in worker:*) command=(tf-exec serve) ;; esac
    rm -f served
    "${command[@]}" --job job --task "$1" >/dev/null 2>served 3>&- &
    server=$!
    pids+=("$server")
    soon 20 grep -q 'ready on' served
}

# work: the command of worker:0
work() {
    words=(tf-exec -g sync.tfg --job job --task worker:0 --run train --feed fed.rec)
    [ -e fed.rec ] || printf '1\n2\n3\n' | tf-data csv - x=1 --batch 1 >fed.rec
}

is_left() { # TASK: its files went with it
    [ ! -e "job/${1/:/-}.pid" ] && [ ! -e "job/${1/:/-}.sock" ]
}

# While steps go on beside it, for ever: the last step is saved, whatever was being saved then.
@test "a save in the background, in each of its states" {
    local point signal step
    take_signals
    for point in save.marked save.locking save.writing save.done save.idle; do
        for signal in $signals; do
            rm -rf ck
            begin_at $point tf-exec -g m.tfg --run step --feed - --save ck/ --save-every 1 \
                < <(endless)
            ends_by "$signal"
            step=$(tail -n 1 err)
            step=${step#tf-exec: m.tfg: interrupted after step }
            [ "$(steps_of ck | tr ' ' '\n' | tail -n 1)" = "$step" ] || { cat err && return 1; }
        done
        take_signals
    done
}

# serves_at POINT COMMAND...: starts a server that stops at the point
serves_at() {
    serves_in=$1
    beside served TF_FAILPOINTS="$1:1:stop" "${@:2}"
    server=$other
}

# told SIGNAL: sends the stopped server the signal, and it ends
told() {
    local code=0
    soon 20 is_in T "$server" || { echo "$serves_in: $(cat served)" && return 1; }
    kill "-$1" "$server"
    kill -CONT "$server"
    wait "$server" || code=$?
    [ "$code" -eq 0 ] || { echo "$serves_in $1: $code: $(cat served)" && return 1; }
    is_left ps:0
    meets "$1" "$serves_in"
}

@test "a worker, in each of the states that others count on" {
    local point signal words server
    tf-ps init --job job -c sync.cluster
    work
    for point in worker.meets worker.starts worker.waits worker.steps worker.left; do
        take_signals
        for signal in $signals; do
            serves ps:0
            begin_at $point "${words[@]}"
            ends_by "$signal" || { echo $point && return 1; }
            is_left worker:0
            kill "$server"
            wait "$server"
        done
    done
}

@test "a shard, in each of its states" {
    local point signal words server serve=(tf-ps serve --job job --task ps:0)
    parts sync 'ps:0 ps:1 worker:0' two
    tf-ps init --job job -c two.cluster # what two shards have saved is none's whole
    work
    beside other.err "${serve[@]}"
    beside other.err tf-ps serve --job job --task ps:1
    "${words[@]/sync/two}" -q 2>/dev/null
    tf-ps save --job job old
    tf-ps stop --job job
    wait_each "${pids[@]}"
    rm -r job
    tf-ps init --job job -c sync.cluster
    for point in shard.starts shard.serves shard.awaits shard.saved{,-awaits} shard.ends; do
        take_signals
        for signal in $signals; do
            rm -rf ck
            case $point in
            shard.awaits) serves_at "$point" "${serve[@]}" --save old/ --resume ;;
            *) serves_at "$point" "${serve[@]}" --save ck/ ;;
            esac
            case $point in
            shard.saved*)
                soon 20 grep -q 'ready on' served
                "${words[@]}" 2>/dev/null
                beside other.err tf-ps save --job job --last ck
                [ "$point" = shard.saved ] ||
                    { wait "$other" && beside other.err tf-ps restore --job job old; } ;;
            shard.ends)
                soon 20 grep -q 'ready on' served
                kill "$server" ;;
            esac
            told "$signal"
        done
    done
}

@test "a worker that keeps what is its own, when another one leaves, and as it leaves" {
    local signal words first row other
    sed -e 's/shape={}/shape={1024, 1}/; s/{-1}/{-1, 1024}/' \
        -e 's/x \* w/MatMul(x, w)/; s/, 0)/, {0, 1})/' net.lua | tf-graph >wide.tfg
    parts allreduce,bits=1 'worker:0 worker:1 worker:2' own wide.tfg
    tf-ps init --job job -c own.cluster
    row=$(yes 0.01 | head -n 1024 | paste -sd,)
    echo "$row" | tf-data csv - x=1-1024 --batch 1 >one.rec
    yes "$row" | head -n 200 | tf-data csv - x=1-1024 --batch 1 >ones.rec
    words=(tf-exec -g own.tfg --job job --lease 30s --run train --task)
    take_signals
    for signal in $signals; do
        # The first worker has no second step. It begins to leave, with its eighth record, after the
        # last one has sent its sixth, after step 1, and waits for the others'.
        beside first.err TF_FAILPOINTS=worker.waits:2:stop,collective.bring:8:stop "${words[@]}" \
            worker:0 --feed one.rec
        first=$other
        beside other.err "${words[@]}" worker:1 --feed ones.rec
        begin_at collective.bring:6:stop,worker.heard:1 "${words[@]}" worker:2 --feed ones.rec
        state=worker.heard
        soon 20 is_in T "$first"
        kill -CONT "$first" # from here on it stands still in its next point only
        soon 20 is_in T "$first"
        kill -CONT "$pid"
        soon 20 is_in T "$pid"
        kill -CONT "$first"
        ends_by "$signal"
        wait "$first"
        wait "$other"
    done
    take_signals
    for signal in $signals; do
        beside other.err "${words[@]}" worker:1 --feed ones.rec
        beside other.err "${words[@]}" worker:2 --feed ones.rec
        begin_at worker.parts "${words[@]}" worker:0 --feed one.rec
        ends_by "$signal"
        wait "${pids[-2]}" # who go on without it
        wait "${pids[-3]}"
    done
    is_left worker:0
    is_left worker:1
    is_left worker:2
}

# Once the supervisor is about to end by itself, its tasks' result stands; a signal only hurries it.
@test "a supervisor, in each phase of a job" {
    local phase signal code want command
    mkdir -m 700 job
    while read -r phase want command; do
        take_signals
        for signal in $signals; do
            rm -f again
            printf '%s\n' 'job job' 'timeout 5s' 'stop true' 'task s' service \
                'command exec sleep 600' 'task a' "command $command" >tasks
            if [ "$phase" = saving ]; then
                begin env TF_FAILPOINTS=saving:1:stop tf-supervise tasks
                state=saving
                soon 20 test -S job/control
                tf-supervise --stop --job job 2>/dev/null 3>&- &
                pids+=("$!")
                soon 20 is_in T "$pid"
            else
                begin_at "$phase" tf-supervise tasks
            fi
            hit "$signal"
            [ "$want" != signal ] || want=$((128 + $(kill -l "$signal")))
            [ "$code" -eq "$want" ] || { echo "$phase $signal: $code: $(cat err)" && return 1; }
            soon 20 flock -n job/lock true
            [ "$(ls job)" = $'lock\nrun.json' ] || { ls job && return 1; }
            [ "$want" -lt 129 ] || [ "$phase" = saving ] || want=signal
        done
    done <<'TABLE'
running    signal exec sleep 600
restarting signal [ -e again ] || { touch again; exit 1; }; exec sleep 600
saving     143    exec sleep 600
leaving    0      true
closing    0      true
over       0      true
TABLE
}

@test "a session that is served, in each of its states" {
    local point signal words server code
    tf-ps init --job job -c sync.cluster
    work
    for point in served.reading served.linking served.open served.closing; do
        take_signals
        for signal in $signals; do
            serves_at $point tf-ps serve --job job --task ps:0
            begin "${words[@]}" --timeout 5s
            told "$signal"
            code=0
            wait "$pid" || code=$?
            case $point in # its steps are done by then
            served.closing) ;;
            *) [ "$code" -eq 69 ] || { echo "$point: $code: $(cat err)" && return 1; } ;;
            esac
            is_left worker:0
        done
    done
}

@test "a worker with a shard, in each of its states" {
    local point signal words server
    tf-ps init --job job -c sync.cluster
    work
    take_signals
    for signal in $signals; do # nobody is there
        begin "${words[@]}"
        soon 20 grep -q 'waiting for ps:0' err
        ends_by "$signal"
        is_left worker:0
    done
    for point in exec.reads exec.opens exec.starts exec.feeds exec.feeds:2 exec.steps exec.ends; do
        take_signals
        for signal in $signals; do
            serves ps:0
            begin_at $point "${words[@]}"
            ends_by "$signal"
            is_left worker:0
            kill "$server"
            wait "$server"
            is_left ps:0
        done
    done
}

# A wait for a frozen shard ends with --grace, long before the lease does. The step there is
# cancelled first, which may take five seconds.
@test "a worker whose shard stands still, in each of its states" {
    local point signal most words server
    tf-ps init --job job -c sync.cluster
    work
    while read -r point most; do
        take_signals
        for signal in $signals; do
            rm -f served
            tf-ps serve --job job --task ps:0 --lease 60s >/dev/null 2>served 3>&- &
            server=$!
            pids+=("$server")
            soon 20 grep -q 'ready on' served
            begin_at "$point" "${words[@]}" --lease 60s --grace 0.3
            kill -STOP "$server"
            kill -CONT "$pid"
            soon 20 waits "$pid"
            SECONDS=0
            ends_by "$signal"
            [ "$SECONDS" -lt "$most" ] || { echo "$point $signal: $SECONDS s" && return 1; }
            is_left worker:0
            kill -9 "$server"
            wait "$server" || true
        done
    done <<'TABLE'
exec.opens   8
exec.starts  8
exec.steps:2 11
exec.ends    8
TABLE
}

@test "a worker whose session a shard opens" {
    local signal words server
    tf-ps init --job job -c sync.cluster
    work
    take_signals
    for signal in $signals; do
        serves_at served.reading tf-ps serve --job job --task ps:0 --lease 60s
        begin "${words[@]}" --lease 60s --grace 0.3
        soon 20 is_in T "$server"
        ends_by "$signal"
        is_left worker:0
        kill -9 "$server"
        wait "$server" || true
    done
}

@test "a worker that waits for another one" {
    local signal words
    tf-ps init --job job -c allreduce.cluster
    work
    take_signals
    for signal in $signals; do
        begin "${words[@]/sync/allreduce}" --save ck/
        soon 20 grep -q 'waiting for worker:1' err
        ends_by "$signal"
        is_left worker:0
        [ -z "$(steps_of ck)" ]
    done
}

@test "a shard and a task that serves, in each of their states" {
    local signal point command
    tf-ps init --job job -c sync.cluster
    for command in 'tf-ps serve --job job --task ps:0' 'tf-exec serve --job job --task worker:0'; do
        take_signals
        for signal in $signals; do
            # shellcheck disable=SC2086  # words
            begin_at member.open $command
            hit "$signal"
            # shellcheck disable=SC2086
            begin $command
            soon 20 grep -q 'ready on' err
            hit "$signal"
            [ "$code" -eq 0 ] # it was told to end, and has
            is_left ps:0
            is_left worker:0
        done
    done
}

@test "a checkpoint over links, whatever it waits for" {
    local signal server
    tf-ps init --job job -c sync.cluster
    tf-ckpt init bk
    take_signals
    for signal in $signals; do # nobody is there
        begin tf-ckpt save bk --job job
        sleep 0.2
        ends_by "$signal"
    done
    serves ps:0
    kill -STOP "$server"
    for signal in INT TERM; do # who is there stands still
        begin tf-ckpt save bk --job job
        sleep 0.2
        ends_by "$signal"
    done
    kill -CONT "$server"
    exec 9>bk/writer.lock
    flock 9
    echo 'process 77, of a test' >bk/writer.lock
    take_signals
    for signal in $signals; do # another one writes
        begin tf-ckpt save bk --job job --lock-wait 60s -v 9>&-
        soon 20 grep -q 'waiting for the lock of bk, held by process 77, of a test, 5. s left' err
        ends_by "$signal"
        grep -q 'bk: locked by process 77, of a test; interrupted while waiting for it' err
    done
    exec 9>&-
    [ -z "$(steps_of bk)" ]
}

@test "a run that waits for the lock of its store at its end" {
    local signal
    take_signals
    for signal in $signals; do
        rm -rf ck
        tf-ckpt init ck
        exec 9>ck/writer.lock
        flock 9
        echo 'process 77, of a test' >ck/writer.lock
        begin tf-exec -g m.tfg --run step --feed f.rec --save ck/ 9>&-
        soon 20 grep -q 'waiting for the lock of ck, held by process 77, of a test, ' err
        ends_by "$signal"
        [ "$(tail -n 1 err)" = "tf-exec: ck: locked by process 77, of a test; \
interrupted while waiting for it; step 3 is not saved" ]
        exec 9>&-
        [ -z "$(steps_of ck)" ]
    done
}

@test "a run whose fetches nobody reads saves what its steps did" {
    local signal
    take_signals
    for signal in $signals; do
        rm -rf ck output
        mkfifo output
        exec 8<>output
        begin_to output tf-exec -g m.tfg --run step --feed - --fetch move --save ck/ \
            --grace 0.3 < <(endless)
        soon 20 waits "$pid"
        ends_by "$signal"
        [ "$(tail -n 1 err)" = "tf-exec: stdout: interrupted; nobody reads" ] ||
            { cat err && return 1; }
        [ "$(steps_of ck)" -gt 0 ]
        exec 8>&-
    done
}

@test "tf-run that waits for its graph, a job that runs, and one that saves" {
    local signal
    mkfifo graph
    exec 6<>graph
    take_signals
    for signal in $signals; do
        begin tf-run --ps 1 --workers 1 --job job - <graph 6>&-
        soon 20 test -s job/cluster
        ends_by "$signal"
        soon 20 flock -n job/lock true # its guard has ended
        [ "$(ls job)" = lock ]
    done
    exec 6>&-
    printf '#!/bin/sh\ncat f.rec; exec sleep 1000\n' >feed
    chmod +x feed
    take_signals
    for signal in $signals; do
        rm -rf ck job
        begin tf-run --ps 1 --workers 1 --job job --save ck/ net.tfg -- ./feed
        soon 20 grep -q '"step":3' job/run.json
        ends_by "$signal"
        [ "$(steps_of ck)" = 3 ]
        rm -rf ck job
        TF_FAILPOINTS=client.ask:1:stop begin tf-run --ps 1 --workers 1 --job job --save ck/ -q \
            --timeout 2s net.tfg -- ./feed
        soon 20 grep -q '"step":3' job/run.json
        kill "-$signal" "$pid"
        soon 20 grep -q '"state":"saving"' job/run.json
        bash -c "kill -$signal $pid" # the second one, of another sender, ends all
        goes_on
        [ "$code" -eq $((128 + $(kill -l "$signal"))) ]
        [ -z "$(ls job/*.pid job/*.sock job/control 2>/dev/null)" ]
    done
}

@test "filters that wait for their input" {
    local signal command
    mkfifo input
    exec 7<>input
    for command in 'tf-graph' 'tf-graph --text' 'tf-opt' 'tf-grad --of loss --wrt x' 'tf-place' \
        'tf-part' 'tf-replicate -c sync.cluster' 'tf-data csv - x=1 --batch 1' 'tf-op Tanh -' \
        'tf-show --json'; do
        take_signals
        for signal in $signals; do
            # shellcheck disable=SC2086  # words
            begin $command -o made.out <input
            sleep 0.05
            ends_by "$signal"
            [ ! -e made.out ]
        done
    done
    exec 7>&-
}

# full NAME: a full pipe, whose reader is stopped
full() {
    mkfifo "$1"
    exec 8<>"$1"
    dd if=/dev/zero of="$1" bs=512 oflag=nonblock 2>/dev/null || [ $? -eq 1 ]
}

@test "who writes to a reader that stands still" {
    local signal command
    tf-exec -g net.tfg --run init --save ck/ -q
    tf-ckpt cat ck w -o x.npy
    tf-place -q --devices CPU:0,CPU:1 net.tfg >placed.tfg
    printf '1\n2\n3\n' >rows.csv
    full output
    for command in 'tf-graph net.lua' 'tf-graph --text m.txt' 'tf-opt net.tfg' 'tf-show net.tfg' \
        'tf-part placed.tfg' 'tf-replicate net.tfg' 'tf-data csv rows.csv x=1' \
        'tf-op Neg x.npy' 'tf-op list' 'tf-show --follow f.rec' 'tf-ckpt list ck' \
        'tf-ckpt show ck' 'tf-ckpt cat ck w' 'tf-ckpt show --json ck' 'tf-ps --man'; do
        take_signals
        for signal in $signals; do
            # shellcheck disable=SC2086  # words
            begin_to output $command
            soon 20 waits "$pid" || { echo "$command: $(cat err)" && return 1; }
            SECONDS=0
            ends_by "$signal" || { echo "$command" && return 1; }
            [ "$SECONDS" -lt 10 ]
            case $command in
            tf-ckpt* | *--follow*)
                [ "$(cat err)" = "${command%% *}: stdout: interrupted; nobody reads" ] ;;
            *) [ ! -s err ] || { echo "$command: $(cat err)" && return 1; } ;;
            esac
        done
    done
    exec 8>&-
}

@test "a job whose lines nobody reads goes on, starts again what dies, and ends" {
    local signal worker
    printf '#!/bin/sh\ncat f.rec; exec sleep 1000\n' >feed
    chmod +x feed
    full lines
    take_signals
    for signal in $signals; do
        rm -rf ck job
        env --default-signal=INT,HUP tf-run --ps 1 --workers 1 --job job --save ck/ net.tfg \
            -- ./feed 2>lines 3>&- &
        pid=$!
        pids+=("$pid")
        soon 20 grep -q '"step":3' job/run.json
        worker=$(cat job/worker-0.pid)
        kill -9 "$worker"
        soon 20 another "$worker"
        SECONDS=0
        hit "$signal"
        [ "$code" -eq $((128 + $(kill -l "$signal"))) ]
        [ "$SECONDS" -lt 15 ]
        [ "$(steps_of ck)" -ge 3 ]
    done
    exec 8>&-
}

another() { # PID: is the worker
    [ "$(cat job/worker-0.pid)" != "$1" ] && grep -q '"restarts":1' job/run.json
}

# The cells of the life tables that are asserted above: by name of the state, and signal.
@test "no state is left out" {
    local most=1
    [ "${SIGNALS-}" != all ] || most=3
    { cd "${root:?}" && cat ./*/*_life.c ./*/*/*_life.c | grep -o '"[a-z]*\.[a-z-]*"' &&
        grep -o '{{"[a-z]*"' libcommon/supervise/supervise.c; } | tr -d '{"' |
        sort -u >"$BATS_TEST_TMPDIR/states"
    cd "$BATS_TEST_TMPDIR"
    sort -u "$BATS_FILE_TMPDIR/cells" | grep -Fwf states >asserted || true
    echo "# $(wc -l <asserted) of $(($(wc -l <states) * 3)) cells, state x signal" >&3
    cut -d ' ' -f 1 asserted | uniq -c | awk -v most="$most" '$1 >= most {print $2}' >met
    grep -vxFf met states >left || true
    [ ! -s left ] || { cat left && return 1; }
}
