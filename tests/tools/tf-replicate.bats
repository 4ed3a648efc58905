#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-replicate: the tasks of nodes, the new nodes, and the graphs that it refuses.
# shellcheck disable=SC2030,SC2031,SC2154  # status, output and stderr are of run
load ../lib/tools
load ../lib/explained
load ../lib/refused

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    cat >m.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 4}}
h = nn.dense(x, 3, {name = "h"})
loss = Mean(Square(h), {0, 1})
n = global_step()
rate = schedule.inverse_time{step = n, rate = 0.1, steps = 10, decay = 0.5}
entry.train = {minimize(loss, optim.momentum{rate = rate}, {global_step = n, clip = 1}), rate}
LUA
    tf-graph m.lua | tf-opt >m.tfg
    printf 'task %s\n' 'ps:0 unix:a' 'ps:1 unix:b' >c
    printf 'task worker:%s\n' '0 unix:c' '1 unix:d' '2 unix:e' >>c
}

device() { # NODE: what a replicated graph asks for
    sed -n "s|^$1 = .* @?\([^ ]*\).*|\1|p" r.txt
}

@test "variables and updates to the shards, once; the rest to the workers" {
    tf-replicate m.tfg | tf-show --text >r.txt
    for node in h/W h/W/Assign h/W/read h/W/momentum update/h/W/ApplyMomentum h/W/take h/W/push; do
        [ "$(device $node)" = /job:ps ]
    done
    for node in x h loss h/W/gradient clock/version; do
        [ "$(device $node)" = "/job:worker/task:*" ]
    done
    for node in clock/join clock/push clock/round clock/advance clock/leave; do
        [ "$(device $node)" = /job:ps/task:0 ]
    done
    [ "$(grep -c '= ApplyMomentum(' r.txt)" = 2 ]
    grep -q '^entry update = ^clock/advance$' r.txt
    grep -q '^entry join = clock/join, clock/join:1, ^clock/join/over$' r.txt
    # the optimizer's rate belongs to the update; a worker that fetches it has a copy
    grep -q '^rate/update = ' r.txt || grep -q '^update/.*Mul(.*update' r.txt
    # names and seeds stay the same
    diff <(tf-show --text m.tfg | grep -o '^.* = Variable() {.*}' | sort) \
        <(grep -o '^.* = Variable() {.*}' r.txt | grep -v '^clock/' | sort)
}

@test "what is used first is the most urgent, read, pushed or reduced" {
    cat >o.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 4}}
h = nn.dense(x, 3, {name = "h", bias = false})
loss = Mean(Square(nn.dense(h, 2, {name = "o", bias = false})), {0, 1})
entry.train = minimize(loss, optim.momentum{rate = 0.1})
LUA
    sed 's/Placeholder.*/RandomUniform({5, 4}, {dtype = float32})/' o.lua >drawn.lua
    printf 'task %s\n' 'ps:0 unix:a' 'worker:0 unix:b' >c
    for script in o.lua drawn.lua; do
        tf-graph $script | tf-opt >o.tfg
        tf-replicate o.tfg | tf-place -c c | tf-part -c c | tf-show --text >r.txt
        for node in h/W/read:1 o/W/read:2 h/W/gradient:1 o/W/gradient:2; do
            grep -q "^${node%:*}/Send_[0-9]* = .* _priority=${node#*:}, " r.txt
        done
        [ "$(grep -c ' = Send(.*_priority=' r.txt)" = 4 ]
        tf-replicate --mode allreduce o.tfg | tf-show --text >r.txt
        [ "$(grep -c '_priority=' r.txt)" = 1 ]
        grep -q '^allreduce/gradients = AllReduce(.*_priority=1, ' r.txt
    done
}

@test "gradients leave together in the order in which they are known, numbers of rows with rows" {
    cat >b.lua <<'LUA'
local ids = Placeholder{dtype = int32, shape = {-1}}
local h = nn.embedding(ids, 99, 32, {name = "table"})
for i = 1, 2 do h = nn.dense(h, 32, {name = "low" .. i, bias = false}) end
h = nn.dense(h, 1024, {name = "wide", bias = false})
for i = 1, 3 do h = nn.dense(h, 1024, {name = "high" .. i, bias = false}) end
entry.train = minimize(Mean(Square(h), {0, 1}), optim.sgd{rate = 0.1})
LUA
    tf-graph b.lua | tf-opt | tf-replicate --mode allreduce | tf-show --text |
        grep '^allreduce/gradients.* = AllReduce(' >r.txt
    # a gradient of 4 MiB leaves alone, whatever belongs to lower layers
    sed 's/, ^.*//; s/.*AllReduce(//' r.txt >got
    diff <(head -n 3 got) <(printf 'high%d/W/gradient\n' 3 2 1)
    diff <(sed -n '4s/, /\n/gp' got | sort) - <<'END'
low1/W/gradient
low2/W/gradient
table/W/gradient/values/distinct
table/W/gradient/values/sum
wide/W/gradient
END
}

@test "a check of the loss is the worker's, whatever it is made of" {
    cat >n.lua <<'LUA'
x = variable{name = "x", shape = {8, 4}, init = init.normal{stddev = 1}, trainable = false}
h = nn.dense(x, 3, {name = "h", activation = Relu})
rate = variable{name = "rate", init = 0.1, trainable = false}
loss = Mean(Square(h), {0, 1})
entry.train = minimize(loss, optim.sgd{rate = Exp(rate)})
LUA
    tf-graph n.lua | tf-opt | tf-replicate | tf-show --text >r.txt
    [ "$(grep -c '= Relu(' r.txt)" = 1 ]
    [ "$(device loss/check)" = "/job:worker/task:*" ]
    grep -q '^h/W/push = AggregatorPush(.*\^loss/check' r.txt
    # values that the update takes are on the shards, even if others wait for them
    cat >u.lua <<'LUA'
local w = variable{name = "w", init = {1.0, 1, 1}}
local a = variable{name = "a", init = 0.0, trainable = false}
local b = variable{name = "b", init = 0.0, trainable = false}
local one = Exp(a)
entry.train = group{minimize(Sum(Square(w), {0}), optim.sgd{rate = 0.1}), Assign(a, one),
                    control({one}, function() return AssignAdd(b, 1) end)}
LUA
    tf-graph u.lua | tf-replicate | tf-show --text >r.txt
    [ "$(grep -c '= Exp(' r.txt)" = 1 ]
    grep -q '= AssignAdd(b, .*\^Exp.*@?/job:ps ' r.txt
}

@test "rows that a gradient has more than once are summed by the worker" {
    cat >rows.lua <<'LUA'
local ids = Placeholder{dtype = int32, shape = {-1}}
local table = variable{name = "table", shape = {9, 4}, init = 1}
if D.distinct == 1 then ids = Unique(ids) end
entry.train = minimize(Sum(Square(Gather(table, ids)), {0, 1}), optim.sgd{rate = 0.1})
LUA
    tf-graph rows.lua | tf-opt >rows.tfg
    for mode in sync async ssp,bound=1 allreduce; do
        tf-replicate --mode $mode rows.tfg | tf-show --text >r.txt
        grep -q "^table/gradient/values/distinct = Unique(table/gradient/indices) " r.txt
        grep -q "^table/gradient/values/sum = UnsortedSegmentSum(table/gradient/values, " r.txt
        [ "$(device table/gradient/values/sum)" = "/job:worker/task:*" ]
        grep -qE '= (AggregatorPush|AllReduce)\(table/gradient/values/(distinct|sum), ' r.txt
        # ids that are known to be distinct need no sum
        tf-graph rows.lua -D distinct=1 | tf-opt | tf-replicate --mode $mode | tf-show --text >r.txt
        [ "$(grep -c '= Unique(' r.txt)" = 1 ]
        run -1 grep -q 'values/sum = ' r.txt
    done
}

@test "the placer tells the clock how many workers there are" {
    tf-replicate m.tfg | tf-place -c c | tf-show --text >r.txt
    [ "$(grep -c 'workers=3' r.txt)" = 5 ]
    tf-replicate --workers 7 m.tfg | tf-place -c c | tf-show --text >r.txt
    [ "$(grep -c 'workers=7' r.txt)" = 5 ]
    tf-replicate m.tfg | tf-place -c c --report 2>report.txt >/dev/null
    [ "$(grep -c 'variable, by bytes' report.txt)" = 5 ]
}

@test "one graph for all workers; 16 bits halve what crosses" {
    tf-replicate m.tfg | tf-place -c c | tf-part --report 2>full.txt | tf-show | grep -c '^graph' >n
    [ "$(cat n)" = 3 ]
    for type in bf16 fp16; do
        tf-replicate --compress $type m.tfg | tf-place -c c | tf-part --report 2>half.txt >/dev/null
        grep -q '^h/W/gradient .* 48 B$' full.txt
        grep -q '^h/W/gradient .* 24 B$' half.txt
        grep -q '^h/W/read .* 24 B$' half.txt
    done
}

@test "every mode makes a graph that can be placed and cut" {
    for mode in sync sync,backup=1 async ssp,bound=3 downpour,fetch=5,push=5,rate=0.1; do
        tf-replicate --mode $mode m.tfg | tf-place -c c | tf-part | tf-show >shown
        grep -q '^graph' shown
    done
    tf-replicate --accumulate 4 m.tfg | tf-place -c c | tf-part >/dev/null
    tf-replicate --mode allreduce m.tfg | tf-show --text >r.txt
    [ "$(device h/W)" = "/job:worker/task:*" ]
    [ "$(grep -c /job:ps r.txt)" = 0 ]
    grep -q '^allreduce/gradients = AllReduce(' r.txt
}

@test "an all-reduced graph trains alone as the graph that it was made of" {
    tf-exec -g <(tf-place m.tfg) --run train --fetch loss --feed 'x=[[1,2,3,4]]' -n 9 >a.rec
    tf-replicate --mode allreduce m.tfg >r.tfg
    printf 'task worker:0 unix:c\n' >one
    tf-place -c one r.tfg | tf-show --text |
        sed 's|@?[^ ]* ||; s|@/job:worker/task:\*/device:CPU:0||' | tf-graph --text | tf-place |
        tf-exec --run train --fetch loss --feed 'x=[[1,2,3,4]]' -n 9 >b.rec
    cmp <(tf-show a.rec) <(tf-show b.rec)
}

@test "nonsense is refused in a line" {
    modes="none of sync; sync,backup=B; async; ssp,bound=S; downpour,fetch=N,push=M"
    modes+="; sync,update=worker; allreduce,factors=auto,bits=1; auto"
    local pushed='is for what is pushed to shards; with --mode allreduce there are none'
    refused_with 64 "tf-replicate: m.tfg: --accumulate $pushed" \
        "tf-replicate --mode allreduce --accumulate 2 m.tfg"
    refused_with 64 "tf-replicate: m.tfg: --compress $pushed" \
        "tf-replicate --mode allreduce --compress bf16 m.tfg"
    refused_with 64 "tf-replicate: --mode 'sinc' is $modes" "tf-replicate --mode sinc m.tfg"
    refused_with 64 "tf-replicate: --mode 'ssp' is $modes" "tf-replicate --mode ssp m.tfg"
    refused_with 64 'tf-replicate: --workers is a number of workers, 1 to 4096, not 1000000' \
        'tf-replicate --workers 1000000 m.tfg'
    why="takes fetch=N, push=N, push.NAME=N, rate=X, factors=auto, factors=all, bits=N,"
    why+=" threshold=X, top=SHARE and after=N, not"
    for more in pull=3 push.=3 push.h=0 push.h push=; do
        refused_with 64 "tf-replicate: --mode downpour $why '$more'" \
            "tf-replicate --mode downpour,$more m.tfg"
    done
    refused_with 64 "tf-replicate: --compress is bf16 or fp16, not 'int8'" \
        "tf-replicate --compress int8 m.tfg"
    why="takes factors=auto, factors=all, bits=N, threshold=X, top=SHARE, after=N, delay=1,"
    why+=" average=N, pieces=SIZE, schedule=NAME, dense=a, b or c and update=pass, not 'factors=1'"
    refused_with 64 "tf-replicate: --mode allreduce $why" \
        "tf-replicate --mode allreduce,factors=1 m.tfg"
    why="has codes bits=1 to 8, bits=1 or 2 with threshold=X, and top=SHARE, a part of 1"
    for mode in allreduce sync,backup=1 downpour; do
        refused_with 64 "tf-replicate: --mode $mode: after=N is for a code: bits=N, top=SHARE" \
            "tf-replicate --mode $mode,after=9 m.tfg"
    done
    code="a code that may be used, as all-reduce has them (bits=N, threshold=X, top=SHARE, after=N)"
    for more in delay=1 bits=9 factors=all nothing; do
        refused_with 64 "tf-replicate: --mode auto takes $code, not '$more'" \
            "tf-replicate --mode auto,$more m.tfg"
    done
    refused_with 64 "tf-replicate: m.tfg: --mode auto depends on the cluster: give -c" \
        "TF_CLUSTER= tf-replicate --mode auto --workers 3 m.tfg"
    refused_with 64 "tf-replicate: --mode allreduce has no delay but of one step" \
        "tf-replicate --mode allreduce,delay=2 m.tfg"
    why="delay=1 keeps gradients, and factors=all has none to keep"
    refused_with 64 "tf-replicate: --mode allreduce: $why" \
        "tf-replicate --mode allreduce,factors=all,delay=1 m.tfg"
    why="has codes bits=1 to 8, bits=1 or 2 with threshold=X, and top=SHARE, a part of 1"
    for code in bits=9 threshold=0 threshold=1,bits=3 top=0 top=1.5 top=0.1,bits=2; do
        for mode in allreduce sync,backup=1 downpour; do
            refused_with 64 "tf-replicate: --mode $mode $why" \
                "tf-replicate --mode $mode,$code m.tfg"
        done
    done
    refused_with 64 "tf-replicate: --mode 'sync,bits=1,after=0' is $modes" \
        "tf-replicate --mode sync,bits=1,after=0 m.tfg"
    why="depends on the number of workers: give -c or --workers"
    for mode in allreduce sync downpour; do
        refused_with 64 "tf-replicate: m.tfg: factors=auto $why" \
            "TF_CLUSTER= tf-replicate --mode $mode,factors=auto m.tfg"
    done
    refused_with 64 "tf-replicate: --mode 'sync,factors=most' is $modes" \
        "tf-replicate --mode sync,factors=most m.tfg"
    refused_with 64 "tf-replicate: --explain $why" \
        "TF_CLUSTER= tf-replicate --mode allreduce --explain m.tfg"
    why="compares what workers can send, and --in-graph has none"
    refused_with 64 "tf-replicate: --explain $why" "tf-replicate --in-graph 2 --explain m.tfg"
    why="no entry trains: entry.train = minimize(...) makes one that does"
    refused_with 65 "tf-replicate: stdin: $why" \
        "echo 'x = Placeholder{dtype = float32}; entry.run = x + 1' | tf-graph - | tf-replicate"
    why="node 'clock/leave': ClockLeave: the graph was replicated before"
    refused_with 65 "tf-replicate: stdin: $why" \
        "tf-replicate m.tfg | tf-replicate"
}

@test "averages of what was updated are updates, too, also beside batch normalization" {
    cat >a.lua <<'LUA'
local x = Placeholder{dtype = float32, shape = {-1, 4}, name = "x"}
local h = nn.batch_norm(nn.dense(x, 3, {name = "h"}), {training = true})
local train = minimize(Mean(Square(h), {0, 1}), optim.sgd{rate = 0.1})
local e = ema(0.9)
entry.train = group{train, control({train}, function() return e.apply(trainable()) end)}
LUA
    tf-graph a.lua >a.tfg
    for mode in async ssp,bound=3 downpour allreduce sync; do
        tf-replicate --mode $mode a.tfg | tf-show --text >r.txt
    done
    tf-replicate --in-graph 2 a.tfg >t.tfg
    grep -q '^h/W/read_1 = Identity(h/W, .*^train/update.*@?/job:ps ' r.txt
    grep -q '^ema/AssignSub = .*@?/job:ps ' r.txt
    tf-replicate a.tfg | tf-place -c c | tf-part >p.tfg
}

@test "rows of a gradient are told by their attribute, whatever their nodes are called" {
    cat >rows.lua <<'LUA'
ids = Placeholder{dtype = int32, shape = {-1}}
table = variable{name = "table", shape = {10, 4}, init = init.normal{stddev = 1}}
rows = Gather(table, ids)
entry.first = minimize(Sum(Square(rows), {0, 1}), optim.sgd{rate = 0.1})
entry.second = minimize(Sum(rows, {0, 1}), optim.sgd{rate = 0.1})
LUA
    tf-graph rows.lua | tf-opt >rows.tfg
    tf-show --text rows.tfg >whole.txt
    grep -q '^table/gradient/values_1 = .*_gradient_role="values"' whole.txt
    for entry in first second; do
        tf-replicate --entry $entry rows.tfg | tf-show --text >r.txt
        [ "$(grep -c '= AggregatorTake(.*reductions=\["rows","mean_rows"\]' r.txt)" = 1 ]
        tf-replicate --entry $entry --mode allreduce rows.tfg | tf-show --text >r.txt
        grep -q '= AllReduce.*mean_rows' r.txt
        run -65 --separate-stderr tf-replicate --entry $entry --mode downpour,push=2 rows.tfg
        [[ $stderr == *"is a gradient of some rows"* ]]
    done
}

@test "factors of a gradient are sent where that is less: (n-1) K (M+N), not 2 (n-1)/n M N" {
    wide
    factors_taken --mode allreduce,factors=auto --workers 2
    # layers of the same height share the rest
    tf-show --text wide.out >wide.txt
    [ "$(grep -c ' = AllReduce(' wide.txt)" = 2 ] # and one of initial values
    grep '^allreduce/gradients = ' wide.txt >reduced
    grep -o 'reductions=[^]]*' reduced >reductions
    tr -cd '\n,' <reductions | wc -c >n
    [ "$(cat n)" -eq 7 ]
    explained --mode allreduce,factors=all --workers 2 | grep '^v 400 832 - factors$'
    explained --mode allreduce --workers 2 | grep '^w 20000 2400 - gradient$'
}

@test "terms of a matrix' gradient that are alike in all workers are added behind its factors" {
    wide
    sed -i 's/^entry.train/loss = loss + 0.1 * Sum(Square(w), {0, 1}) + 0.2 * Sum(Abs(w), {0, 1})\
loss = loss + Sum(t * x_of_all, {0, 1})\
entry.train/; s/^v = /x_of_all = Placeholder{dtype = float32, shape = {100, 50}}\
v = /' wide.lua
    tf-graph wide.lua | tf-opt >wide.tfg
    # t may be multiplied with another matrix in each
    for mode in allreduce,factors=all sync,factors=all; do
        explained --mode $mode --workers 2 >said
        grep '^w 20000 2400 - factors$' said
        grep '^t 20000 - - gradient:$' said
    done
    tf-show --text wide.out >wide.txt
    grep -q '^w/gradient = AddN(.*, w/gradient/rows/product) .*@?/job:ps' wide.txt
    # a whole gradient is handed over whole
    tf-replicate --mode sync --workers 2 wide.tfg | tf-show --text >wide.txt
    grep -q '^w/gradient = Identity(.*_gradient="w"' wide.txt
}

@test "what is less depends on workers and links, and on what multiplying takes" {
    wide
    for n in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do echo "task worker:$n h:$n"; done >fast
    { cat fast && echo 'link * * bandwidth=1M'; } >slow
    auto=(--mode "allreduce,factors=auto")
    explained "${auto[@]}" -c fast | grep '^w 300000 36000 - gradient$'
    explained "${auto[@]}" -c slow | grep '^w 300000 36000 - factors$'
    echo 'op MatMul 1e9' >costs
    explained "${auto[@]}" -c slow --costs costs | grep '^w 300000 36000 - gradient$'
    explained "${auto[@]}" -c fast --workers 32 | grep '^w 620000 74400 - gradient$'
}

@test "a code of few bits crosses n - 1 times, or 2 (n - 1) / n where its mean is coded, too" {
    wide
    # groups are rows of 50, enough for 1024 elements, and divide the 100 rows evenly: 25
    explained --mode allreduce,bits=1 --workers 2 >one
    diff - one <<'END'
t 20000 2400 660 code
table 16 - - gradient:
table 1600 - - gradient:
v 400 832 - gradient
w 20000 2400 660 code
END
    explained --mode allreduce,bits=3 --workers 3 | grep '^w 40000 4800 2544 code$'
    explained --mode allreduce,threshold=0.5 --workers 2 | grep '^w 20000 2400 1252 code$'
    explained --mode allreduce,bits=1,threshold=0 --workers 2 | grep '^w 20000 2400 628 code$'
    explained --mode allreduce,top=0.01 --workers 2 | grep '^w 20000 2400 400 code$'
    # factors if they take less time, on a link where only bytes count
    for n in 0 1; do echo "task worker:$n h:$n"; done >slow
    echo 'link * * bandwidth=1k' >>slow
    explained --mode allreduce,factors=auto,bits=8 -c slow | grep '^w 20000 2400 5032 factors$'
    explained --mode allreduce,factors=auto,bits=3 -c slow | grep '^w 20000 2400 1908 code$'
    tf-show --text wide.out >wide.txt
    [ "$(grep -c ' = QuantizeGradient(' wide.txt)" = 4 ]
    grep -q '^entry.train.*\^w/gradient/lost' wide.txt
    grep -q '^w/gradient/residual = Variable().*_per_worker="sum"' wide.txt
}

# The clock is on ps:0, and this many variables are on ps:1.
@test "that all gradients of a shard were pushed is one message" {
    printf 'task ps:%d unix:p%d\n' 0 0 1 1 >cluster
    printf 'task worker:%d unix:w%d\n' 0 0 1 1 >>cluster
    tf-graph - <<'LUA' >many.tfg
local sums = {}
for i = 1, 40 do sums[i] = Sum(Square(variable{name = "w" .. i, shape = {4}, init = 0.5}), 0) end
loss = AddN(sums)
entry.train = minimize(loss, optim.sgd{rate = 0.1})
LUA
    tf-replicate -q --mode sync --workers 2 many.tfg | tf-place -q -c cluster |
        tf-part -q >many.parts
    tf-show --text many.parts >many.txt
    [ "$(grep -c '^w[0-9]*/gradient/Send_' many.txt)" = 40 ]
    sent=' = Send(.*recv_device="/job:ps/task:0.*send_device="/job:ps/task:1'
    [ "$(grep -c "$sent" many.txt)" = 2 ]
}
