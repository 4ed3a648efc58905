#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Several processes: shards that serve, workers that drive. Unix sockets in the test's own folder.
# shellcheck disable=SC2154,SC2030,SC2031  # stderr is of run; a test and its teardown share a shell
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    declare -gA pid=()
    : >c
    export TF_CLUSTER=c OMP_NUM_THREADS=1
}

teardown() {
    kill_pids "${pids[@]}"
}

# serve TOOL TASK [OPTION]...: starts the tool and waits until it is ready; its pid is in
# ${pid[TASK]}
serve() {
    local tool=$1 task=$2 i
    shift 2
    "$tool" serve --task "$task" "$@" 2>"$task.err" 3>&- &
    pid[$task]=$!
    pids+=($!)
    for ((i = 0; i < 200; i++)); do
        ! grep -q "$task: ready on unix:" "$task.err" || return 0
        sleep 0.05
    done
    cat "$task.err"
    return 1
}

cluster() { # SHARDS WORKERS
    local i
    for ((i = 0; i < $1; i++)); do echo "task ps:$i unix:p$i memory=1G"; done >c
    for ((i = 0; i < $2; i++)); do echo "task worker:$i unix:w$i"; done >>c
}

shards() { # N
    local i
    for ((i = 0; i < $1; i++)); do serve tf-ps "ps:$i"; done
}

work() { # N OPTION...: runs worker N, with a limit
    local n=$1
    shift
    timeout -s KILL 60 tf-exec --task "worker:$n" "$@"
}

feed() { # OPTION...
    "$root/examples/feed" "$@"
}

digits() { # the parts of the example, for the cluster
    tf-graph "$root/examples/digits.lua" | tf-opt | tf-place -c c | tf-part >parts.tfg
}

@test "TF_CONFIG tells who asks shards where they are" {
    unset TF_CLUSTER
    export TF_CONFIG='{"cluster": {"ps": ["unix:p0", "unix:p1"]}}'
    shards 2
    [ "$(tf-ps status --json | jq -r .task | xargs)" = "ps:0 ps:1" ]
    tf-ps stop
    wait "${pids[@]}"
}

@test "over 1, 2 and 4 shards the losses and variables of 100 steps are those of one process" {
    (cd "$root/examples" && feed --rows 1-1437 --shuffle --batch 64 --epochs 5 --steps 100) >f.rec
    tf-graph "$root/examples/digits.lua" | tf-opt | TF_CLUSTER='' tf-place |
        tf-exec --run train --fetch loss --feed f.rec --save one.ckpt | tf-show --json >one.txt
    [ "$(wc -l <one.txt)" = 100 ]
    tf-show one.ckpt | sort >one.vars
    for n in 1 2 4; do
        cluster $n 1
        digits
        shards $n
        work 0 -g parts.tfg --run train --fetch loss --save "$n.ckpt" <f.rec |
            tf-show --json >$n.txt
        cmp one.txt $n.txt
        tf-show $n.ckpt | sort | cmp one.vars
        for ((i = 0; i < n; i++)); do
            kill "${pid[ps:$i]}"
            wait "${pid[ps:$i]}"
        done
    done
}

@test "what was saved is spread over the shards again" {
    (cd "$root/examples" && feed --rows 1-1437 --shuffle --batch 64 --steps 10) >f.rec
    tf-graph "$root/examples/digits.lua" | tf-opt | TF_CLUSTER='' tf-place >one.tfg
    tf-exec -g one.tfg --run train --feed f.rec --save a.ckpt
    tf-exec -g one.tfg --run train --feed f.rec --restore a.ckpt --fetch loss | tf-show >one.txt
    cluster 2 1
    digits
    shards 2
    work 0 -g parts.tfg --run train --fetch loss --restore a.ckpt <f.rec | tf-show | cmp one.txt
}

@test "four terminals, in any order: synchronous training of two workers, twice the same bits" {
    cluster 2 2
    tf-graph "$root/examples/digits.lua" | tf-opt | tf-replicate --mode sync |
        tf-place -c c | tf-part >parts.tfg
    for round in 1 2; do
        for w in 1 0; do
            (cd "$root/examples" &&
                feed --rows 1-1437 --shuffle --batch 32 --epochs 2 --shard $w/2 --steps 40) >f$w.rec
            work $w -g parts.tfg --run train --fetch loss <f$w.rec 2>w$w.err |
                tf-show >w$w.$round 3>&- &
            eval "worker$w=\$!"
        done
        for ((i = 0; i < 200; i++)); do
            ! grep -q 'waiting for' w1.err || break
            sleep 0.05
        done
        shards 2
        wait "$worker0"
        wait "$worker1"
        for i in 0 1; do
            kill "${pid[ps:$i]}"
            wait "${pid[ps:$i]}"
        done
    done
    grep -qE '^tf-exec: worker:1: waiting for ps:[01] at unix:p[01]: .*, [0-9]+ s left$' w1.err
    [ "$(wc -l <w0.1)" = 40 ]
    cmp w0.1 w0.2
    cmp w1.1 w1.2
    [ "$(awk 'NR == 40 { print ($4 < 1.5) }' w0.1)" = 1 ]
}

@test "the other modes train, too" {
    cluster 2 2
    for mode in async ssp,bound=3 downpour,fetch=5,push=5; do
        tf-graph "$root/examples/digits.lua" | tf-opt | tf-replicate --mode "$mode" |
            tf-place -c c | tf-part >parts.tfg
        shards 2
        for w in 0 1; do
            (cd "$root/examples" &&
                feed --rows 1-1437 --shuffle --batch 32 --epochs 2 --shard $w/2 --steps 40) >f$w.rec
            work $w -g parts.tfg --run train --fetch loss <f$w.rec | tf-show >w$w 3>&- &
            eval "worker$w=\$!"
        done
        wait "$worker0"
        wait "$worker1"
        [ "$(awk 'NR == 1 { first = $4 } END { print (NR == 40 && $4 < first) }' w0)" = 1 ]
        for i in 0 1; do
            kill "${pid[ps:$i]}"
            wait "${pid[ps:$i]}"
        done
    done
}

@test "a worker that is told to end leaves, and the other goes on without it" {
    cluster 1 2
    tf-graph "$root/examples/digits.lua" | tf-opt | tf-replicate --mode sync |
        tf-place -c c | tf-part >parts.tfg
    shards 1
    mkfifo pipe
    (cd "$root/examples" && feed --rows 1-1437 --batch 32 --steps 5 && sleep 60) >pipe 3>&- &
    pids+=($!)
    tf-exec --task worker:1 -g parts.tfg --run train --feed pipe 2>w1.err 3>&- &
    worker1=$!
    pids+=("$worker1")
    (cd "$root/examples" && feed --rows 1-1437 --batch 32 --steps 20) |
        work 0 -g parts.tfg --run train --fetch loss -o w0.rec 3>&- &
    worker0=$!
    sleep 2
    kill "$worker1"
    wait "$worker1" || status=$?
    [ "$status" -eq 143 ]
    wait "$worker0"
    [ "$(tf-show w0.rec | wc -l)" = 20 ]
}

# A loop whose body and condition are in different processes, and branches in two.
@test "loops and conditionals over processes" {
    cat >loop.lua <<'LUA'
local shard, worker = "/job:ps/task:0", "/job:worker/task:0"
device(worker, function() x = Placeholder{dtype = float32, name = "x", shape = {}} end)
device(worker, function()
  _, sum = while_loop(function(i, a) return Less(i, x) end,
    function(i, a)
      local next
      device(shard, function() next = a * 2 + i end)
      return i + 1, next
    end, {Const(0.0), Const(1.5)})
end)
device(worker, function()
  y = cond(Less(x, 5), function() return sum * 10 end,
           function() local r; device(shard, function() r = sum + 0.25 end) return r end)
end)
entry.r = Pack({sum, y})
LUA
    cluster 1 1
    shards 1
    for x in 0 3 6 200; do
        tf-graph loop.lua | tf-exec --run r --feed "x=$x" | tf-show >one.txt
        tf-graph loop.lua | tf-place -c c | tf-part |
            work 0 --run r --feed "x=$x" | tf-show | cmp one.txt
    done
}

@test "an error in a shard's kernel is told by the driver, with its task, node and line" {
    cat >bad.lua <<'LUA'
device("/job:worker/task:0", function() x = Placeholder{dtype = int32, name = "x", shape = {}} end)
device("/job:ps/task:1", function() t = Gather(Const({1.0, 2.0}), x) end)
device("/job:worker/task:0", function() y = t + 1 end)
entry.r = y
LUA
    cluster 2 1
    shards 2
    tf-graph bad.lua | tf-place -c c | tf-part >parts.tfg
    run --separate-stderr work 0 -g parts.tfg --run r --feed x=1
    [ "$status" -eq 0 ]
    run --separate-stderr work 0 -g parts.tfg --run r --feed x=7
    [ "$status" -eq 65 ]
    [[ $stderr == "tf-exec: worker:0: step 1: ps:1: node 't' (bad.lua:2): Gather: "* ]]
    work 0 -g parts.tfg --run r --feed x=1 >/dev/null # the shard goes on
}

@test "a number that is not finite on a shard: the driver is told the reason, and has its advice" {
    cat >log.lua <<'LUA'
x = Placeholder{dtype = float32, name = "x", shape = {}}
device("/job:ps/task:0", function() t = CheckNumerics(Log(x), {message = "t", name = "t"}) end)
entry.r = -t
LUA
    printf '%s\n' 'x = Placeholder{dtype = float32, name = "x", shape = {}}' 'entry.r = -x' >x.lua
    (
        unset TF_CLUSTER
        tf-graph x.lua | tf-place >x.tfg
        for value in 1 -1; do
            tf-exec -g x.tfg --feed x=$value --fetch x -o "x$value.rec"
        done
    )
    cat x1.rec x-1.rec >x.rec
    cluster 1 1
    shards 1
    tf-graph log.lua | tf-place -c c | tf-part >parts.tfg
    run --separate-stderr work 0 -g parts.tfg --run r --feed x.rec
    [ "$status" -eq 65 ]
    [[ $stderr == "tf-exec: worker:0: step 2: ps:0: node 't' (log.lua:2): CheckNumerics: t is "* ]]
    [[ $stderr == *"; --check finds the origin" ]]
}

# Starts a worker that trains until it is stopped; its last line is in w.err. Returns after its
# first step.
endless() {
    local i
    mkfifo pipe
    (cd "$root/examples" && exec ./feed --rows 1-1437 --shuffle --batch 64 --epochs 9999) >pipe \
        2>/dev/null 3>&- &
    pids+=($!)
    tf-exec --task worker:0 -g parts.tfg --run train --fetch loss --feed pipe "$@" >w.out \
        2>w.err 3>&- &
    worker=$!
    pids+=("$worker")
    for ((i = 0; i < 400; i++)); do
        [ ! -s w.out ] || return 0
        sleep 0.05
    done
    return 1
}

@test "kill -9 of a shard: the worker says who and in which step, at once, and exits 69" {
    cluster 2 1
    digits
    shards 2
    endless
    soon 20 eval 'tf-ps list -c c >list && awk "/^ps:1/ && \$5 > 20 { n++ } END { exit !n }" list'
    kill -9 "${pid[ps:0]}"
    before=$(date +%s%N)
    wait "$worker" || status=$?
    after=$(date +%s%N)
    [ "$status" -eq 69 ]
    # the other shard may be the first to notice, at its own socket, while sending or waiting
    cat w.err
    send="node '[^']*' \([^)]*\): Send(Group)?: "
    peer="ps:0 at unix:p[01], incarnation [0-9]+: "
    grep -qE "^tf-exec: worker:0: step [0-9]+: (ps:1: )?($send)?$peer" w.err
    (((after - before) / 1000000 < 2500)) # 10 ms on a machine that is idle; the lease is 3 s
    serve tf-ps ps:0                       # what is left of the socket does not hinder
    (cd "$root/examples" && feed --rows 1-64 --batch 64) >one.rec
    run --separate-stderr work 0 -g parts.tfg --run train --feed one.rec -o fetches
    [ "$status" -eq 65 ] # what the other has learned is not lost without a word
    [[ $stderr == *" was trained ("*" updates), and init would set both: "* ]]
    tf-ps reset -c c
    work 0 -g parts.tfg --run train --feed one.rec -o fetches
}

@test "a frozen shard is found by its lease" {
    cluster 2 1
    digits
    shards 2
    endless --lease 1s
    kill -STOP "${pid[ps:1]}"
    wait "$worker" || status=$?
    [ "$status" -eq 69 ]
    grep -qE ': step [0-9]+: ps:1 at .*: silent for 1 s' w.err
}

@test "a worker that is killed leaves its shards in service" {
    cluster 2 1
    digits
    shards 2
    endless
    kill -9 "$worker"
    wait "$worker" || [ $? -eq 137 ]
    work 0 -g parts.tfg --run eval --feed <(cd "$root/examples" && feed --rows 1438-1500 --batch 63)
}

@test "SIGTERM ends a server cleanly, and so does the end of its lifeline" {
    cluster 1 1
    shards 1
    kill "${pid[ps:0]}"
    wait "${pid[ps:0]}"
    [ ! -e p0 ]
    mkfifo life
    sleep 30 >life 3>&- &
    holder=$!
    pids+=($!)
    serve tf-ps ps:0 --parent-pipe 9 9<life
    kill "$holder"
    wait "${pid[ps:0]}"
}

@test "a worker serves others" {
    places_on_cpus "who serves has the devices that a cluster file names"
    cat >two.lua <<'LUA'
device("/job:worker/task:1", function()
  x = Placeholder{dtype = float32, shape = {-1}}
  twice = x * 2
end)
device("/job:worker/task:0", function() y = twice + 1 end)
entry.r = {y, twice}
LUA
    cluster 0 2
    serve tf-exec worker:1
    tf-graph two.lua | tf-place -c c | tf-part >parts.tfg
    run bash -c 'tf-exec --task worker:0 -g parts.tfg --run r --feed "x=[5,7]" | tf-show'
    [ "$output" = "step 1  y 11 15  twice 10 14" ]
}

@test "what is missing is said" {
    cluster 1 1
    digits
    run --separate-stderr tf-exec -g parts.tfg --task worker:7 --run train
    [ "$status" -eq 78 ]
    [ "$stderr" = "tf-exec: worker:7: there is no task worker:7 in the cluster" ]
    run --separate-stderr work 0 -g parts.tfg --run train --timeout 0.3s --feed /dev/null
    [ "$status" -eq 69 ]
    [[ $stderr == "tf-exec: worker:0: "*"ps:0 at unix:p0: "* ]]
    run --separate-stderr tf-ps serve
    [ "$status" -eq 64 ]
    echo 'task ps:0 127.0.0.1:0' >c
    run --separate-stderr tf-ps serve --task ps:0
    [ "$status" -eq 78 ]
}
