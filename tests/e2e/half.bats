#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Mixed-precision training: tf-opt --half. Unix sockets in the test's own folder.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools
load ../lib/gpu

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    export OMP_NUM_THREADS=1
}

teardown() {
    kill_pids "${pids[@]}"
}

feed() { # OPTION...
    (cd "$root/examples" && exec ./feed "$@")
}

train() { # GRAPH OPTION...
    local graph=$1
    shift
    tf-exec -g "$graph" --run train --fetch loss "$@"
}

casts() { # GRAPH OPTION...: how many its plan has
    train "$@" --feed f.rec --dump-plan | tf-show --json |
        grep -o '"kernel":"[a-z_]*cast"' | wc -l
}

# Its first gradients exceed float16 by a few powers of two.
overflowing() {
    cat >over.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 64}}
y = Placeholder{dtype = int32, shape = {-1}}
h = Relu(nn.batch_norm(nn.dense(x / 16, 32, {name = "hidden"})))
logits = nn.dense(h, 10, {name = "output"})
loss = nn.cross_entropy(logits, y) * 100
n = global_step()
step = minimize(loss, optim.adam{rate = 0.003}, {clip = 5, global_step = n})
average = ema(0.9)
after = control({step}, function() return average.apply(trainable()) end)
entry.train = {step, after, loss}
LUA
    tf-graph over.lua | tf-opt --half "${1-fp16}" "${@:2}" >over.tfg
}

accuracy() { # GRAPH: after 15 epochs
    feed --rows 1-1437 --shuffle --batch 100 --epochs 15 |
        train "$1" --save "$1.ckpt" >"$1.rec"
    feed --rows 1438- --batch 360 | tf-exec -g "$1" --run eval --restore "$1.ckpt" |
        tf-show | sed 's/.*accuracy //'
}

@test "the digits' nets are as good in 16 bits as in 32, within one percent" {
    local net type plain half
    for net in digits digits_cnn; do
        tf-graph "$root/examples/$net.lua" >"$net.tfg"
        tf-opt "$net.tfg" >"$net.float32"
        plain=$(accuracy "$net.float32")
        for type in bf16 fp16; do
            tf-opt --half "$type" "$net.tfg" >"$net.$type"
            half=$(accuracy "$net.$type")
            echo "$net $plain $type $half"
            awk "BEGIN { exit !($half >= $plain - 0.01 && $plain > 0.94) }"
        done
    done
}

@test "a checkpoint of either is the other's, for bf16" {
    tf-graph "$root/examples/digits.lua" >d.tfg
    tf-opt d.tfg >f.tfg
    tf-opt --half bf16 d.tfg >b.tfg
    feed --rows 1-1437 --batch 100 --steps 5 >d.rec
    train f.tfg --save f.ckpt <d.rec >f.rec
    train b.tfg --save b.ckpt <d.rec >b.rec
    diff <(tf-ckpt show f.ckpt | awk 'NR > 1 { print $1, $2 }') \
        <(tf-ckpt show b.ckpt | awk 'NR > 1 { print $1, $2 }')
    train b.tfg --restore f.ckpt <d.rec >b.rec
    train f.tfg --restore b.ckpt <d.rec >f.rec
}

state=loss_scale,loss_scale/skipped_steps,loss_scale/good_steps,global_step,adam/beta1_power
state+=,batch_norm/mean,hidden/W,hidden/W/adam/m,output/b/average

@test "a step whose gradients overflow changes nothing but the scale" {
    overflowing
    feed --rows 1-1437 --batch 100 --epochs 1 |
        tf-exec -g over.tfg --run train --fetch "$state" | tf-show --json >s
    [ "$(wc -l <s)" = 15 ]
    local skipped
    skipped=$(jq -s '.[14]["loss_scale/skipped_steps"]' s)
    [ "$skipped" -ge 2 ]
    [ "$skipped" -lt 10 ]
    [ "$(jq -s '.[14].loss_scale * pow(2; .[14]["loss_scale/skipped_steps"])' s)" = 32768 ]
    [ "$(jq -s '.[14].global_step + .[14]["loss_scale/skipped_steps"]' s)" = 14 ]
    rest='del(.loss_scale, .["loss_scale/skipped_steps"], .step, .loss)'
    for ((i = 1; i <= skipped; i++)); do
        diff <(jq -s ".[0] | $rest" s) <(jq -s ".[$i - 1] | $rest" s)
    done
    run diff <(jq -s ".[0] | $rest" s) <(jq -s ".[$skipped + 1] | $rest" s)
    [ "$status" -eq 1 ]
}

@test "a run that is resumed has the bits of one that was not" {
    overflowing
    feed --rows 1-1400 --batch 100 | train over.tfg --fetch "$state" --save a | tf-show --json >all
    feed --rows 1-600 --batch 100 | train over.tfg --save first.ckpt >first.rec
    feed --rows 601-1400 --batch 100 |
        train over.tfg --fetch "$state" --restore first.ckpt | tf-show --json >last
    [ "$(wc -l <last)" = 8 ]
    diff <(jq -c 'del(.step)' all | tail -7) <(jq -c 'del(.step)' last | tail -7)
}

@test "a fixed factor has no variables, and the same bits with any power of two" {
    overflowing bf16 --loss-scale 1024
    [ "$(tf-show --text over.tfg | grep -c 'loss_scale = Variable')" = 0 ]
    feed --rows 1-1400 --batch 100 | train over.tfg | tf-show >scaled
    overflowing bf16
    feed --rows 1-1400 --batch 100 | train over.tfg | tf-show >plain
    diff plain scaled
}

learns='NR == 1 { first = $4; scale = $6 }
    END { exit !(NR == n && $4 < first && $6 < scale && $6 >= 256) }'

# two shards, two workers
replicated() { # MODE
    printf 'task ps:%d unix:p%d memory=1G\n' 0 0 1 1 >c
    printf 'task worker:%d unix:w%d\n' 0 0 1 1 >>c
    export TF_CLUSTER=c
    tf-replicate --mode "$1" over.tfg | tf-place -c c | tf-part >parts.tfg
    for i in 0 1; do
        tf-ps serve --task "ps:$i" 2>"ps$i.err" 3>&- &
        pids+=($!)
        declare -g "ps$i=$!"
    done
    for i in 0 1; do
        feed --rows 1-1437 --batch 32 --epochs 2 --shard "$i/2" --steps 40 |
            timeout -s KILL 60 tf-exec --task "worker:$i" -g parts.tfg --run train \
                --fetch loss,loss_scale | tf-show >"o$i" 3>&- &
        declare -g "worker$i=$!"
    done
    wait "$worker0"
    wait "$worker1"
    for i in 0 1; do
        eval "kill \$ps$i; wait \$ps$i"
    done
}

@test "workers and shards leave out a round that overflows, and go on" {
    overflowing
    for mode in sync async downpour,fetch=3,push=2; do
        replicated "$mode"
        awk -v n=40 "$learns" o0
    done
}

@test "steps of a worker's own cannot be left out" {
    sed 's/optim.adam{rate = 0.003}/optim.sgd{rate = 0.001}/' "$root/examples/digits.lua" >sgd.lua
    tf-graph sgd.lua | tf-opt --half fp16 >sgd.tfg
    run --separate-stderr tf-replicate --mode downpour,fetch=3 sgd.tfg
    [ "$status" -eq 65 ]
    [[ $stderr == *"which steps of a worker's own cannot: give downpour rate=0" ]]
    tf-replicate --mode downpour,fetch=3,rate=0 sgd.tfg >r.tfg
    tf-graph sgd.lua | tf-opt --half fp16 --loss-scale 128 >sgd.tfg
    tf-replicate --mode downpour,fetch=3 sgd.tfg >r.tfg
}

@test "towers train with a scaled loss" {
    overflowing
    tf-replicate --in-graph 2 --towers '/device:CPU:*' over.tfg |
        tf-place --devices CPU:0,CPU:1 | tf-part >towers.tfg
    feed --rows 1-1437 --batch 100 --epochs 3 |
        tf-exec -g towers.tfg --run train --fetch loss,loss_scale | tf-show >t
    awk -v n=45 "$learns" t
}

@test "workers that reduce among themselves train with a scaled loss" {
    overflowing
    printf 'task worker:%d unix:w%d\n' 0 0 1 1 >c
    export TF_CLUSTER=c
    tf-replicate --mode allreduce over.tfg | tf-place -c c | tf-part >parts.tfg
    for i in 0 1; do
        feed --rows 1-1437 --batch 32 --epochs 2 --shard "$i/2" --steps 40 |
            timeout -s KILL 60 tf-exec --task "worker:$i" -g parts.tfg --run train \
                --fetch loss,loss_scale | tf-show >"o$i" 3>&- &
        declare "worker$i=$!"
    done
    wait "$worker0"
    wait "$worker1"
    awk -v n=40 "$learns" o0
    diff <(awk '{ print $6 }' o0) <(awk '{ print $6 }' o1)
}

@test "updates read gradients of 16 bits as they are, and come out the same" {
    local graph type
    feed --rows 1-320 --batch 64 --epochs 1 >f.rec
    emulated
    for type in bf16 fp16; do
        tf-graph "$root/examples/digits.lua" | tf-opt --half $type --loss-scale none |
            tf-place >cpu.tfg
        on_gpu <cpu.tfg >gpu.tfg
        for graph in cpu gpu; do
            train $graph.tfg --feed f.rec --save a.ckpt >a.rec
            train $graph.tfg --feed f.rec --save b.ckpt --without updates >b.rec
            cmp <(tf-show --json a.rec) <(tf-show --json b.rec)
            cmp <(tf-show --json a.ckpt) <(tf-show --json b.ckpt)
            # the casts of gradients of two matrices and a bias
            [ $(($(casts $graph.tfg --without updates) - $(casts $graph.tfg))) -eq 3 ]
        done
    done
}
