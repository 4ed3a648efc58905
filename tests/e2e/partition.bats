#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Processes that are cut off and come back: a network of two hosts that is cut during training
# (network namespaces, which need privileges), and a frozen worker that another one has replaced.
# shellcheck disable=SC2030,SC2031,SC2154  # variables of run and setup
load ../lib/tools

bats_require_minimum_version 1.5.0

readonly steps=12

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    export OMP_NUM_THREADS=1 TMPDIR=$BATS_TEST_TMPDIR
    unset TF_JOB TF_CLUSTER TF_KEY_FILE
    set -o pipefail
    children=()
    make_model
}

teardown() {
    end_pids "${children[@]}"
    ip netns del "$here" 2>/dev/null || true
    ip netns del "$there" 2>/dev/null || true
}

# Each push adds a power of two to both variables: the sum tells how often each push counted.
make_model() {
    local step
    cat >sum.lua <<'LUA'
x = Placeholder{dtype = float32, name = "x", shape = {-1}}
a = variable{name = "a", shape = {1000}, init = 0}
b = variable{name = "b", shape = {1000}, init = 0}
loss = Sum((a + b) * -Mean(x, 0), 0)
entry.train = minimize(loss, optim.sgd{rate = 1})
LUA
    tf-graph sum.lua | tf-opt >sum.tfg
    for ((step = 0; step < 2 * steps; step++)); do
        echo $((1 << step)) >number.csv
        tf-data csv number.csv x=1 >"x.$((step % 2)).$((100 + step)).rec"
    done
    # half of the data, and the rest once the go file is there
    cat >feed <<'SH'
#!/bin/sh
set -- x."${TF_SHARD%/*}".*.rec
cat "$1" "$2" "$3" "$4" "$5" "$6"
shift 6
until [ -e go ]; do sleep 0.02; done
exec cat "$@"
SH
    chmod +x feed
}

state_of() { # PID
    sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -c1
}

stands_still() { # PID
    [ "$(state_of "$1")" = T ]
}

sums() { # of a stream: the different values
    tf-show --json | sed -n 's/^{"[ab]":\[\(.*\)\]}/\1/p' | tr , '\n' |
        awk '{ printf "%d\n", $1 }' | sort -u
}

# works NUMBER [NAME=VALUE]: runs worker NUMBER, from its data's start
works() {
    local number=$1
    shift
    cat "x.$number".*.rec | env "$@" timeout -s KILL 60 tf-exec -g parts.tfg -c c --lease 1s \
        --task "worker:$number" --run train --fetch loss >"w$number.$#.rec" 2>"w$number.$#.err" 3>&-
}

@test "a worker that stood still while another took its place is fenced, and nothing counts twice" {
    local pid first second other
    printf 'task %s unix:%s device=CPU:0\n' ps:0 p0 ps:1 p1 worker:0 w0 worker:1 w1 >c
    tf-replicate --mode async sum.tfg | tf-place -c c | tf-part >parts.tfg
    for pid in 0 1; do
        tf-ps serve -c c --lease 1s --task "ps:$pid" 2>"p$pid.err" 3>&- &
        children+=($!)
    done
    works 0 &
    other=$!
    works 1 TF_FAILPOINTS=driver.reply:9:stop &
    first=$!
    zombie_is_there() {
        zombie=$(pgrep -f "tf-exec.*--task worker:1" -P "$(pgrep -P "$first" timeout)") &&
            stands_still "$zombie"
    }
    soon 30 zombie_is_there
    children+=("$zombie")
    sleep 1.5 # more than its lease
    works 1 &
    second=$!
    wait "$other"
    wait "$second"
    grep -E 'worker:1: joined again; [0-9]+ feed records? passed over' w1.0.err
    [ "$(tf-ps get a -c c | sums)" = $(((1 << 2 * steps) - 1)) ]
    kill -CONT "$zombie"
    status=0
    wait "$first" || status=$?
    cat w1.1.err
    [ "$status" -eq 69 ]
    [ "$(wc -l <w1.1.err)" -eq 1 ]
    grep -E '^tf-exec: worker:1: step [0-9]+: .*(ps:[01] at unix:|replaced by)' w1.1.err
    [ "$(tf-ps get a -c c | sums)" = $(((1 << 2 * steps) - 1)) ]
    [ "$(tf-ps get b -c c | sums)" = $(((1 << 2 * steps) - 1)) ]
    tf-ps stop -c c
}

# Two hosts, a cable of 200 Mbit/s between them, and an ssh that bypasses it.
two_networks() {
    here=tf-here-$BASHPID there=tf-there-$BASHPID
    ip netns add "$here" 2>/dev/null || skip "needs the right to make network namespaces"
    ip netns add "$there"
    ip link add veth0 netns "$here" type veth peer name veth0 netns "$there"
    ip -n "$here" address add 10.99.7.1/24 dev veth0
    ip -n "$there" address add 10.99.7.2/24 dev veth0
    local name
    for name in "$here" "$there"; do
        ip -n "$name" link set lo up
        ip -n "$name" link set veth0 up
        tc -n "$name" qdisc add dev veth0 root tbf rate 200mbit burst 128kb latency 50ms ||
            skip "needs tc's tbf"
    done
    mkdir bin
    cat >bin/ssh <<EOF
#!/bin/sh
for command; do :; done
ip netns exec "$there" sh -c "\$command"
EOF
    chmod +x bin/ssh
}

has_trained() { # ROUNDS
    tf-ps status --task ps:0 --job run 2>/dev/null | grep " step=$1 " >/dev/null
}

nobody_is_there() {
    [ -z "$(ip netns pids "$there")" ]
}

@test "a network that is cut, and heals, while a job trains" {
    two_networks
    printf 'task %s\n' "ps:0 10.99.7.1:7000" "ps:1 10.99.7.2:7000" "worker:0 10.99.7.1:7001" \
        "worker:1 10.99.7.2:7001" >c
    PATH=$PWD/bin:$PATH ip netns exec "$here" timeout -k 5 90 tf-run -c c --job run --mode async \
        --lease 1s --timeout 15s --save "$PWD/ck/" --threads 1 sum.tfg -- ./feed 2>err 3>&- &
    local tf_run=$!
    children+=("$tf_run")
    soon 30 has_trained $steps
    ip -n "$here" link set veth0 down
    sleep 5
    ip -n "$here" link set veth0 up
    touch go
    wait "$tf_run" || { cat err && false; }
    cat err
    [ ! -e run/ps-0.tries ] # started again here, although the host's address was not there then
    tf-ckpt export "ck@$((2 * steps))" all.ckpt
    [ "$(sums <all.ckpt)" = $(((1 << 2 * steps) - 1)) ]
    soon 5 nobody_is_there || { ip netns pids "$there" | xargs ps -o pid=,args= -p && false; }
}
