#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Limits of a task: memory, descriptors. Beyond them there is one clear line, and the task goes on.
# shellcheck disable=SC2030,SC2031,SC2154  # pids is each test's own, stderr of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    pids=()
    export OMP_NUM_THREADS=1
    cat >m.lua <<'LUA'
device("/job:ps/task:0", function()
  local v = Variable{dtype = float32, shape = {D.n}, name = "v" .. D.n}
  entry.init = group{Assign(v, Fill(Const{D.n}, Const(0.0)))}
  entry.ready = IsVariableInitialized(v)
  pulled = Identity(v)
  device("/job:worker/task:0", function() pushed = pulled + 1 end)
  entry.train = group{Assign(v, pushed)}
  sum = Sum(v, {0})
end)
LUA
    printf '%s\n' 'task ps:0 unix:p0 memory=200M' 'task worker:0 unix:none' >limited
    sed 's/ memory=200M//' limited >cluster
}

teardown() {
    end_pids "${pids[@]}"
}

serve() { # CLUSTER
    tf-ps serve -c "$1" --task ps:0 2>ps.err 3>&- &
    pids+=($!)
    soon 10 grep -q ready ps.err
}

parts() { # ELEMENTS
    tf-graph -D n="$1" m.lua | tf-place -c cluster | tf-part >parts.tfg
}

@test "memory= of a task is what it takes: more is an error that says whose limit it is" {
    local used='the 200 MiB of ps:0 are in use'
    serve limited
    parts 60000000
    run --separate-stderr tf-exec -g parts.tfg -c limited --task worker:0 --run train --steps 1
    [ "$status" -eq 71 ]
    [[ $stderr == "tf-exec: worker:0: init: ps:0: "*"no memory for "*": $used" ]]
    parts 10000000 # 40 MB, and what is pushed, received and copied
    tf-exec -g parts.tfg -c limited --task worker:0 --run train --steps 20
    tf-exec -g parts.tfg -c limited --task worker:0 --fetch sum --steps 1 >/dev/null
    [ "$(awk '/VmHWM/ { print $2 }' "/proc/${pids[0]}/status")" -lt 300000 ]
}

@test "a shard without descriptors says so once, and who comes gets the reason" {
    (ulimit -n 24 && exec tf-ps serve -c cluster --task ps:0) 2>ps.err 3>&- &
    pids+=($!)
    soon 10 grep -q ready ps.err
    /usr/bin/python3 - 3>&- <<'PY' &
import socket, time
sockets = []
for i in range(20):
    s = socket.socket(socket.AF_UNIX)
    s.connect('p0')
    sockets.append(s)
time.sleep(60)
PY
    pids+=($!)
    soon 10 grep -q 'ps:0: refuses connections at unix:p0: has no file descriptor left' ps.err
    grep -q '24 may be open (ulimit -n)$' ps.err
    soon 20 tf-ps status -c cluster # those who say nothing are closed in time
    [ "$(grep -c refuses ps.err)" -le 2 ]
}

@test "strangers take no descriptor that a checkpoint wants, and no place from who has the key" {
    parts 100
    (ulimit -n 64 && exec tf-ps serve -c cluster --task ps:0 --save ck/) 2>ps.err 3>&- &
    pids+=($!)
    soon 10 grep -q ready ps.err
    /usr/bin/python3 - 3>&- <<'PY' &
import select, socket
sockets = []
while True:
    while len(sockets) < 190:
        s = socket.socket(socket.AF_UNIX)
        s.setblocking(False)
        try:
            s.connect('p0')
        except OSError:
            break
        sockets.append(s)
    open('strangers', 'w').close()
    ended = select.select(sockets, [], [], 0.05)[0]
    for s in ended:
        try:
            over = not s.recv(4096)
        except OSError:
            over = True
        if over:
            s.close()
            sockets.remove(s)
PY
    pids+=($!)
    soon 10 test -e strangers
    tf-exec -g parts.tfg -c cluster --task worker:0 --run train --steps 3
    for _ in 1 2 3; do tf-ps save ck -c cluster; done
    [ "$(tf-ckpt list --json ck | wc -l)" -eq 3 ]
    tf-ckpt verify ck --data
}
