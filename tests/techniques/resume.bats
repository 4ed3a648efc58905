#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A job ends with the same bits, and the same states of its workers, whether nobody disturbs it, a
# worker of it is killed, or it is told to end and goes on later: in each way to send gradients.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    export OMP_NUM_THREADS=1
    ln -s "$root/examples/data" data
    # the gradient of one/W goes by a schedule, as it is larger than 64 KiB, or in code, as two/W
    cat >m.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 64}}
y = Placeholder{dtype = int32, shape = {-1}}
local function on(k, f)
  if D.groups then device("/job:worker/task:" .. k, f) else f() end
end
local h = nn.conv2d(Reshape(x / 16, {-1, 8, 8, 1}), 4, 3, {name = "conv", activation = Relu})
on(0, function() h = nn.dense(nn.flatten(h), 80, {name = "one", activation = Tanh}) end)
on(1, function() loss = nn.cross_entropy(nn.dense(h, 40, {name = "two"}), y) end)
entry.train = minimize(loss, optim.momentum{rate = 0.02})
LUA
    tf-graph m.lua | tf-opt >m.tfg
}

teardown() {
    end_pids "${pids[@]}"
    kill_job job
}

# job STORE OPTION...: in line, the command that trains m.tfg for sixty steps. With halfway set it
# waits for the file go in the midst of them.
job() {
    local store=$1
    shift
    line=(timeout -k 5 100 tf-run --save "$store/" --save-every 4 --job job --fetch loss "$@" m.tfg
        -- ${halfway:+"$root/tests/lib/halfway" "$PWD/go"} "$root/examples/feed" --rows 1-480
        --shuffle --batch 8 --epochs "$n")
}

whole() { # STORE OPTION...
    rm -rf job
    halfway='' job "$@"
    "${line[@]}" 2>"$1.err" 3>&- || { cat "$1.err"; return 1; }
}

half() { # STORE OPTION...: started, and half of it done
    rm -rf job go "$1"
    halfway=1 job "$@"
    "${line[@]}" 2>"$1.err" 3>&- &
    pids+=($!)
    soon 30 has_reached "$1" 2 || { cat "$1.err"; return 1; }
}

states() { # STORE: what workers have of their own
    tf-ckpt show --all "$1" | awk '/^worker_/ { print $1 }' | while read -r v; do
        tf-ckpt cat "$1" "$v" | tf-show --json
    done
}

same() { # STORE: as the one of the job that nobody disturbed
    tf-ckpt diff undisturbed "$1" || { cat "$1.err"; return 1; }
    cmp <(states undisturbed) <(states "$1")
}

# alike N OPTION...: a job of N workers
alike() {
    n=$1
    echo "$n workers: ${*:2}"
    set -- --workers "$n" "${@:2}"
    rm -rf undisturbed
    whole undisturbed "$@"
    half killed "$@"
    kill -9 "$(cat "job/worker-$((n > 1)).pid")"
    soon 30 grep '(restart 1 of 5)' killed.err
    touch go
    wait "${pids[-1]}" || { cat killed.err; return 1; }
    same killed
    half told "$@"
    kill -TERM "${pids[-1]}"
    wait "${pids[-1]}" && return 1 # by the signal
    whole told "$@" --resume
    same told
}

# each OPTION...: of all lines of N MORE-OPTIONS
each() {
    local workers options
    while read -r workers options; do
        # shellcheck disable=SC2086  # options are words
        alike "$workers" "$@" $options </dev/null
    done
}

@test "shards" {
    each --ps 2 <<'END'
2 --mode sync --compress bf16
2 --mode sync --accumulate 3
2 --mode sync,factors=all
2 --mode sync,bits=3
2 --mode sync,top=0.05,after=11
1 --mode async,bits=1
1 --mode ssp,bound=2,factors=all
1 --mode downpour,push=2,push.one=6
1 --mode downpour,push=2,fetch=2
END
}

@test "all-reduce: whole, factors, codes, and a step late" {
    each <<'END'
2 --mode allreduce,factors=all
3 --mode allreduce,factors=auto,bits=1
3 --mode allreduce,bits=3
2 --mode allreduce,bits=2,threshold=0.001
3 --mode allreduce,bits=1,threshold=0,after=11
2 --mode allreduce,top=0.05
3 --mode allreduce,delay=1
2 --mode allreduce,bits=1,delay=1
END
}

@test "shards that only add" {
    each --ps 2 <<'END'
3 --mode sync,update=worker
2 --mode sync,update=worker,factors=all
3 --mode sync,update=worker,bits=1
2 --mode sync,update=worker,top=0.05,delay=1
END
}

@test "schedules" {
    each <<'END'
3 --mode allreduce,schedule=chain
3 --mode allreduce,schedule=tree
3 --mode allreduce,schedule=halving
END
}

@test "dense layers cut over workers, in one pass and in several" {
    each <<'END'
2 --mode allreduce,dense=a
3 --mode allreduce,dense=b
2 --mode allreduce,dense=c
2 --mode allreduce,dense=b,update=pass
3 --mode allreduce,dense=c,update=pass
END
}

@test "replicas of several tasks" {
    tf-graph -D groups=1 m.lua | tf-opt >m.tfg
    each --ps 2 --replica-tasks 2 <<'END'
2 --mode sync
2 --mode sync,factors=all
2 --mode sync,bits=1
END
}
