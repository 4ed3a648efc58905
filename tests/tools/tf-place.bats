#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-place in pipes.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    cat >m.txt <<'TEXT'
x = Placeholder() {dtype=float32, shape=[2]}
v = Variable() {dtype=float32, shape=[2]} @?/device:CPU:1 at m.lua:3
u = Assign(v, x)
y = Neg(x)
TEXT
    tf-graph --text m.txt >m.tfg
}

@test "all goes to the one device there is" {
    sed 's/@[^ ]*//' m.txt | tf-graph --text | tf-place >p.tfg
    [ "$(tf-show --text p.tfg | grep -c '@/job:localhost/task:0/device:CPU:0')" -eq 4 ]
}

@test "constraints and references, and why" {
    run --separate-stderr bash -c 'tf-place --devices CPU:0,CPU:1 --report m.tfg >p.tfg'
    [ "$status" -eq 0 ]
    [ "$stderr" = "x  /job:localhost/task:0/device:CPU:0  first device with a kernel
v  /job:localhost/task:0/device:CPU:1  asked for /device:CPU:1
u  /job:localhost/task:0/device:CPU:1  with v
y  /job:localhost/task:0/device:CPU:0  first device with a kernel" ]
    run tf-show --text p.tfg
    [[ $output == *'v = Variable() '*'@?/device:CPU:1 @/job:localhost/task:0/device:CPU:1 '* ]]
}

@test "placing again changes nothing but the provenance" {
    tf-place --devices CPU:0,CPU:1 m.tfg >p.tfg
    tf-place --devices CPU:1,CPU:0 p.tfg >q.tfg
    diff <(tf-show --text p.tfg | grep -v ^made) <(tf-show --text q.tfg | grep -v ^made)
}

@test "a device that is not there" {
    run bash -c 'tf-place m.tfg >p.tfg'
    [ "$status" -eq 65 ]
    [ "$output" = "tf-place: m.tfg: node 'v' (m.lua:3): /device:CPU:1 is not in this cluster:\
 it has /job:localhost/task:0/device:CPU:0" ]
}

@test "two that must share a device" {
    sed 's/^u.*/& @?\/device:CPU:0 at m.lua:8/' m.txt | tf-graph --text >pinned.tfg
    run bash -c 'tf-place --devices CPU:0,CPU:1 pinned.tfg >p.tfg'
    [ "$status" -eq 65 ]
    [ "$output" = "tf-place: pinned.tfg: 'v' on /device:CPU:1 (m.lua:3) and\
 'u' on /device:CPU:0 (m.lua:8) must share a device: v -> u" ]
}

@test "a device that is none is wrong usage" {
    run bash -c 'tf-place --devices CPU:x m.tfg >p.tfg'
    [ "$status" -eq 64 ]
    [[ $output == "tf-place: --devices: "* ]]
}

@test "a placed graph runs" {
    sed 's/@[^ ]*//' m.txt | tf-graph --text | tf-opt | tf-place >p.tfg
    tf-op Neg '[1.0,2]' -o x.npy
    tf-exec -g p.tfg --fetch y --feed x=x.npy -o y.rec
    tf-show --npy y.rec y >y.npy
    [ "$(tf-op Identity y.npy | tf-show)" = "float32[2]  1 2" ]
}

write_cluster() {
    cat >c.cluster <<'TEXT'
task  ps:0      127.0.0.1:7000  device=CPU:0 memory=1G    # a shard
task  ps:1      127.0.0.1:7001  device=CPU:0 memory=1G
task  worker:0  127.0.0.1:7010  device=CPU:0
task  worker:1  127.0.0.1:7011  device=CPU:0
link  *  *      bandwidth=2G latency=50us
TEXT
}

@test "a cluster: variables with slots and updates over shards, by bytes" {
    write_cluster
    tf-graph "$BATS_TEST_DIRNAME/../../examples/digits.lua" | tf-opt >d.tfg
    tf-place -c c.cluster --report d.tfg >p.tfg 2>report
    grep -Eq '^hidden/W +/job:ps/task:0/device:CPU:0 +variable, by bytes: 32768 of [0-9]+$' report
    grep -Eq '^tf-place: a step takes [0-9.]+ us; on one device [0-9.]+ us; on all in turn' report
    grep -Eq '^tf-place: [0-9]+ tensors cross, [0-9.]+ KiB a step$' report
    tf-show --text p.tfg >p.txt
    # All of hidden/W on one shard, the other variables on the other.
    [ "$(grep -E '^hidden/W[^ ]* = Variable' p.txt | grep -c '@/job:ps/task:0/')" -eq 3 ]
    [ "$(grep -E ' = Variable' p.txt | grep -v '^hidden/W' | grep -c '@/job:ps/task:0/')" -eq 0 ]
    # Nodes without variables are not on a shard.
    [ "$(grep -E ' = (MatMul|Placeholder|Relu)\(' p.txt | grep -c '@/job:ps/')" -eq 0 ]
    # The same again, and from the same graph in another run.
    tf-place -c c.cluster d.tfg | tf-show --text | grep -v ^made | diff - <(grep -v ^made p.txt)
    tf-place -c c.cluster p.tfg | tf-show --text | grep -v ^made | diff - <(grep -v ^made p.txt)
}

@test "one in each task of a job" {
    write_cluster
    printf '%s\n' 'x = Placeholder() {dtype=float32, shape=[2]} @?/job:worker/task:*' \
        'y = Neg(x) @?/job:worker/task:*/device:CPU:0' | tf-graph --text >w.tfg
    tf-place -c c.cluster --report w.tfg >p.tfg 2>report
    grep -q '^y  /job:worker/task:\*/device:CPU:0  one in each of 2 workers$' report
    [ "$(tf-show --text p.tfg | grep -c '@/job:worker/task:\*/device:CPU:0')" -eq 2 ]
}

@test "measured costs, edited" {
    cat >k.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 1000}}
left  = Neg(x)
right = Abs(x)
sum   = left + right
entry.run = sum
LUA
    tf-graph k.lua >k.tfg
    seq 1000 | paste -sd, >x.csv
    tf-data csv x.csv x=1-1000 >x.rec
    tf-exec -g k.tfg --run run --feed x.rec --trace t.rec --without all >/dev/null
    tf-show --costs t.rec >k.costs
    LC_ALL=C sort -c k.costs
    grep -Eq '^node left [0-9]+$' k.costs
    grep -Eq '^op Neg [0-9]+$' k.costs
    sed -i -E 's/^(node (left|right)) .*/\1 5000000/' k.costs
    tf-place --devices CPU:0,CPU:1 --costs k.costs --report k.tfg 2>report | tf-show --text >p.txt
    [ "$(grep -cE '^(left|right) .*@/job:localhost/task:0/device:CPU:1' p.txt)" -eq 1 ]
    grep -q '^tf-place: a step takes 50.*; on one device 100' report
    echo 'node other 5' >other.costs
    tf-place --devices CPU:0,CPU:1 --costs other.costs k.tfg 2>report >p.tfg
    [ "$(cat report)" = "tf-place: other.costs: measures no node of the graph" ]
}

@test "a card's memory, from a cluster file or a file of costs" {
    printf '%s\n' 'v = Variable() {dtype=float32, shape=[1000000]}' \
        'a = Const() {dtype=int32, value=0}' 's = Sum(v, a)' | tf-graph --text >t.tfg
    echo 'op Sum 1000000 CPU
op Sum 1000 GPU' >plain.costs
    { cat plain.costs; echo 'device GPU memory=3M'; } >small.costs
    echo 'task w:0 h:1 device=CPU:0,GPU:0' >plain.cluster
    { cat plain.cluster; echo 'device w:0 GPU memory=3M'; } >small.cluster
    on() { # DEVICE OPTION...
        tf-place "${@:2}" t.tfg | tf-show --text | grep -c "^v = .*device:$1 "
    }
    [ "$(on CUDA:0 -c plain.cluster --costs plain.costs)" -eq 1 ]
    [ "$(on CPU:0 -c small.cluster --costs plain.costs)" -eq 1 ]
    [ "$(on CPU:0 -c plain.cluster --costs small.costs)" -eq 1 ]
    [ "$(on CPU:0 --devices CPU:0,GPU:0 --costs small.costs)" -eq 1 ]
    run --separate-stderr tf-place --devices GPU:0 --costs small.costs t.tfg
    [ "$status" -eq 65 ]
    [[ $stderr == *"t.tfg: the graph does not fit: it needs 40000"* ]]
    [[ $stderr == *"device:CUDA:0, which has 3145728" ]]
}

@test "what asks for a GPU goes to the CPU with --soft alone, and is said" {
    cat >g.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {4}}
device("/device:GPU:0", function()
    entry.run = Neg(x)
end)
LUA
    tf-graph g.lua >g.tfg
    run bash -c 'tf-place g.tfg >p.tfg'
    [ "$status" -eq 65 ]
    [[ $output == "tf-place: g.tfg: node 'Neg'"*"/device:CUDA:0 is not in this cluster"* ]]
    run bash -c 'tf-place --soft g.tfg 2>report | tf-show --text'
    [[ $output == *"Neg(x)"*"@/job:localhost/task:0/device:CPU:0"* ]]
    here=/job:localhost/task:0/device:CPU:0
    [ "$(cat report)" = "tf-place: Neg is on $here: there is no /device:CUDA:0" ]
}

@test "wrong cluster files and costs" {
    printf 'task ps:0 h:1\nlink ps:0 lost=1\n' >bad.cluster
    run bash -c 'tf-place -c bad.cluster m.tfg >p.tfg'
    [ "$status" -eq 78 ]
    local says="bad.cluster:2: a link needs two tasks or hosts, and bandwidth or latency"
    [ "$output" = "tf-place: $says" ]
    run bash -c 'tf-place -c missing m.tfg >p.tfg'
    [ "$status" -eq 66 ]
    echo 'op Neg fast' >bad.costs
    run bash -c 'tf-place --costs bad.costs m.tfg >p.tfg'
    [ "$status" -eq 65 ]
    [ "$output" = "tf-place: bad.costs:1: 'fast' is not a time in nanoseconds" ]
    write_cluster
    run bash -c 'tf-place -c c.cluster --devices CPU:0 m.tfg >p.tfg'
    [ "$status" -eq 64 ]
}

@test "what is placed can also be initialized: a value becomes its variable, and is not beside it" {
    local init
    for init in 'RandomUniform({5000, 1000}, {dtype = float32}) / 2 - 0.1' \
        'Fill({5000, 1000}, 0.5)' 'init.glorot_uniform()' \
        'Reshape(Sin(RandomUniform({5000000}, {dtype = float32})), {5000, 1000})'; do
        cat >tables.lua <<LUA
for i = 1, 2 do
    variable{name = "t" .. i, shape = {5000, 1000}, init = $init}
end
y = Const(1.0)
LUA
        echo 'task worker:0 unix:w memory=42M' >c # of which the variables have 40
        tf-graph tables.lua | tf-place -c c >placed.tfg
        tf-exec -c c --task worker:0 -g placed.tfg --fetch y | tf-show | finds 'y 1$'
    done
}
