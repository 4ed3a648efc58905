#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The control socket of a job: it tells the state and takes the order to end, whatever else comes.
# shellcheck disable=SC2154,SC2030,SC2031  # variables of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    job=job clients=()
}

teardown() {
    local pid
    for pid in "${clients[@]}"; do
        kill "$pid" || true
        wait "$pid" 2>/dev/null || true
    done
    [ -z "${supervisor-}" ] || kill_pids "$supervisor"
}

tasks() { # the lines of FILE, from stdin
    mkdir -p "$job"
    { echo "job $job" && cat; } >tasks
}

supervised() { # in the background; when it listens; sets supervisor
    setsid tf-supervise tasks >out 2>err 3>&- &
    supervisor=$!
    soon 10 state_is running
}

state_is() { # STATE
    [ "$(timeout 5 tf-supervise --status --job "$job" | jq -r .state)" = "$1" ]
}

ended() { # sets code
    code=0
    wait "$supervisor" || code=$?
    supervisor=''
}

# Connects to the socket so many times and sends a text each time; stays until it is killed.
connect() { # TIMES TEXT
    python3 -c '
import os, socket, sys, time
folder = os.open(sys.argv[1], os.O_PATH)
clients = []
for i in range(int(sys.argv[2])):
    client = socket.socket(socket.AF_UNIX)
    client.connect(f"/proc/self/fd/{folder}/control")
    try:
        client.send(sys.argv[3].encode())
    except OSError:
        pass
    clients.append(client)
print("connected", flush=True)
time.sleep(60)' "$job" "$@" >connected 3>&- &
    clients+=($!)
    soon 20 grep -q connected connected
}

@test "the socket answers, is the user's alone, and goes with the job" {
    tasks <<'END'
task a
command until [ -e go ]; do sleep 0.05; done
END
    supervised
    [ "$(stat -c '%F %a' job/control)" = "socket 600" ]
    rm job/run.json
    [ "$(tf-supervise --status --job job | jq -r '.state, .pid' | paste -sd' ')" = \
        "running $supervisor" ]
    touch go
    ended
    [ "$code" -eq 0 ]
    [ ! -e job/control ]
    state_is over
}

@test "a state is read as JSON, however it is laid out" {
    mkdir -p job
    printf '{ "why": "",\n  "state" : "over", "pid" : 1 }\n' >job/run.json
    [ "$(tf-supervise --status --job job | jq -r .state)" = over ]
    printf '{ "why": "{\\"state\\":\\"over\\"", "state": "running", "pid": 1 }\n' >job/run.json
    run -69 --separate-stderr tf-supervise --status --job job
    [[ $stderr == *'its tf-run has died' ]]
    echo '"state":"over"' >job/run.json # no object
    run -69 tf-supervise --status --job job
}

@test "whoever asks for the end waits for it, and hurries nothing" {
    tasks <<'END'
stop touch saving; until [ -e go ]; do sleep 0.05; done; touch saved
cleanup sleep 0.3; touch "$1/cleaned"
task a
command trap 'exit 0' TERM; while :; do sleep 0.05; done
END
    supervised
    local i
    for i in 1 2 3; do
        (tf-supervise --stop --job job && [ -e job/cleaned ] && touch "stopped$i") 3>&- &
    done
    soon 10 test -e saving
    sleep 1.5 # of one sender a second signal counts a second later
    tf-supervise --stop --job job 3>&- &
    sleep 0.3
    state_is saving
    [ ! -e stopped1 ]
    [ ! -e stopped2 ]
    [ ! -e stopped3 ]
    touch go
    ended
    [ "$code" -eq 143 ]
    [ -e saved ]
    soon 5 test -e stopped1 -a -e stopped2 -a -e stopped3
    # but a signal in addition kills
    rm go saving saved
    supervised
    tf-supervise --stop --job job 3>&- &
    soon 10 test -e saving
    kill -INT "$supervisor"
    ended
    [ "$code" -eq 143 ]
    [ ! -e saved ]
}

@test "silent clients, half lines and garbage change nothing" {
    tasks <<'END'
task a
ends 7
command until [ -e go ]; do sleep 0.05; done; exit 7
END
    supervised
    connect 100 ''
    connect 50 sta
    connect 50 "$(head -c 3000 /dev/zero | tr '\0' x)"
    connect 20 $'stopp\n'
    rm job/run.json # it is the socket that answers
    soon 20 state_is running
    [ "$(find "/proc/$supervisor/fd" -type l | wc -l)" -lt 60 ]
    touch go
    ended
    [ "$code" -eq 7 ]
    [ "$(jq -r .why job/run.json)" = FAIL ]
}

@test "the folder's path may be longer than that of a socket" {
    job=$(printf '%080d/' 1 2 3)job
    mkdir -p "$job"
    tasks <<'END'
task a
command exec sleep 60
END
    supervised
    tf-supervise --stop --job "$job"
    ended
    [ "$code" -eq 143 ]
    [ ! -e "$job/control" ]
}

@test "what a killed supervisor leaves is removed, or replaced" {
    tasks <<'END'
task a
command exec sleep 60
END
    supervised
    kill -9 "$supervisor"
    soon 10 test ! -e job/control
    wait "$supervisor" || [ $? -eq 137 ]
    supervised
    kill -STOP "$supervisor" # it does not see that its reaper is lost
    pkill -9 -f -- "--reaper $supervisor"
    kill -9 "$supervisor"
    wait "$supervisor" || [ $? -eq 137 ]
    [ -S job/control ]
    run --separate-stderr tf-supervise --stop --job job
    [ "$status" -eq 69 ]
    [ "$stderr" = "tf-supervise: job directory job: its tf-run has died" ]
    supervised
    tf-supervise --stop --job job
    ended
    [ "$code" -eq 143 ]
}

@test "of one that is frozen the last state is shown" {
    tasks <<'END'
task a
command exec sleep 60
END
    supervised
    kill -STOP "$supervisor"
    state_is running
    tf-supervise --stop --job job 3>&- &
    sleep 0.2
    kill -CONT "$supervisor"
    ended
    [ "$code" -eq 143 ]
}

@test "a folder that can hold no socket is supervised all the same" {
    mkdir -p job/control
    tasks <<'END'
task a
command exec sleep 60
END
    supervised
    grep -q "tf-supervise: nobody can ask for the state: job/control: " err
    tf-supervise --stop --job job
    ended
    [ "$code" -eq 143 ]
    [ -d job/control ]
}
