#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-exec: how many steps run, and how a run ends early.
# shellcheck disable=SC2154  # stderr is of run
bats_require_minimum_version 1.5.0
load ../lib/tools

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    tf-graph -o sum.tfg - <<'EOF'
x = Placeholder{dtype = float32, shape = {-1}}
w = variable{shape = {}, init = init.zeros, name = "w"}
entry.train = group{AssignAdd(w, Sum(x, 0))}
EOF
}

endless() { # a graph whose step never ends
    tf-graph -o endless.tfg - <<'EOF'
v = variable{name = "v", shape = {}, init = 0} -- which there is to save
y = while_loop(function(i) return Less(i, 5) end, function(i) return i * 1 end, {Const(1)})
EOF
}

saved() { # CHECKPOINT is there, with this value
    for _ in $(seq 100); do
        [[ -e $1 ]] && break
        sleep 0.1
    done
    [[ $(tf-show "$1") == "w  float32[]  $2" ]]
}

@test "--steps: as many, none, and what makes no sense" {
    seq 5 | tf-data csv - x=1 --batch 1 >five.rec
    tf-exec -g sum.tfg --run train --feed five.rec --steps 3 --save a.ckpt
    saved a.ckpt 6
    tf-exec -g sum.tfg --run train --steps 0 --save b.ckpt </dev/null
    saved b.ckpt 0
    run --separate-stderr tf-exec -g sum.tfg --run train --feed five.rec --steps -1
    [ "$status" -eq 64 ]
    [ "$stderr" = "tf-exec: --steps: -1 is negative" ]
    run --separate-stderr tf-exec -g sum.tfg --run train --feed five.rec --grace 0
    [ "$status" -eq 64 ]
}

@test "a signal ends the run after the step at hand, and --save still writes" {
    for signal in INT TERM; do
        mkfifo "$signal.csv" "$signal.fifo"
        tf-data csv - x=1 --batch 1 <"$signal.csv" >"$signal.fifo" &
        tf-exec -g sum.tfg --run train --feed "$signal.fifo" --fetch w --save "$signal.ckpt" \
            >"$signal.rec" 2>"$signal.err" &
        exec 9>"$signal.csv"
        seq 3 >&9
        for _ in $(seq 100); do
            [[ $(tf-show "$signal.rec" 2>/dev/null | tail -n 1) == "step 3 "* ]] && break
            sleep 0.1
        done
        kill -s "$signal" $!
        status=0
        wait $! || status=$?
        exec 9>&-
        [ "$status" -eq $((128 + $(kill -l "$signal"))) ]
        saved "$signal.ckpt" 6
        [ "$(cat "$signal.err")" = "tf-exec: sum.tfg: interrupted after step 3" ]
    done
}

# computing PID: waits until it has computed for 0.3 s, several times its startup
computing() {
    local i
    for ((i = 0; i < 400; i++)); do
        [ "$(awk '{ print $14 }' "/proc/$1/stat")" -lt 30 ] || return 0
        sleep 0.05
    done
    return 1
}

@test "a step that does not end is cancelled after --grace, and nothing is saved" {
    endless
    tf-exec -g endless.tfg --fetch y --grace 0.3s --save a.ckpt >a.rec 2>a.err &
    computing $!
    kill -TERM $!
    status=0
    wait $! || status=$?
    [ "$status" -eq 143 ]
    [ "$(cat a.err)" = "tf-exec: endless.tfg: step 1 did not end within 0.3 s of signal 15:\
 cancelled; nothing saved" ]
    [ ! -e a.ckpt ]
    [[ -z $(compgen -G '.*.tmp') ]]
}

@test "the endless step of a graph that is cut over two devices is cancelled, too" {
    tf-graph - <<'EOF' | tf-place --devices CPU:0,CPU:1 | tf-part -o cut.tfg
y = while_loop(function(i) return Less(i, 5) end, function(i)
  local one = device("/device:CPU:0", function() return i / i end)
  return device("/device:CPU:1", function() return i * one end)
end, {Const(1)})
EOF
    [ "$(tf-show cut.tfg | grep -c '^graph ')" -eq 2 ]
    tf-exec -g cut.tfg --fetch y --grace 0.3s >a.rec 2>a.err &
    computing $!
    kill -INT $!
    status=0
    wait $! || status=$?
    [ "$status" -eq 130 ]
    [ "$(cat a.err)" = "tf-exec: cut.tfg: step 1 did not end within 0.3 s of signal 2: cancelled" ]
}

@test "a run that only reads variables says that nothing was restored" {
    tf-graph -o net.tfg - <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 2}}
y = nn.dense(x, 1, {name = "out"})
calls = variable{name = "calls", shape = {}, trainable = false}
loss = nn.mse(y, 0)
entry.predict = y
entry.train = minimize(loss, optim.sgd{rate = 0.1})
entry.count = Identity(calls)
LUA
    run --separate-stderr -0 tf-exec -g net.tfg --run predict --feed 'x=[[1.0,2]]' -o y.rec
    [ "$stderr" = "tf-exec: net.tfg: --run predict reads 'out/W' as it is initialized; --restore \
reads what was trained" ]
    run --separate-stderr -0 tf-exec -g net.tfg --run predict --feed 'x=[[1.0,2]]' -q -o y.rec
    [ -z "$stderr" ]
    run --separate-stderr -0 tf-exec -g net.tfg --run train --feed 'x=[[1.0,2]]' --save net.ckpt
    [ -z "$stderr" ]
    run --separate-stderr -0 tf-exec -g net.tfg --run predict --feed 'x=[[1.0,2]]' \
        --restore net.ckpt -o y.rec
    [ -z "$stderr" ]
    run --separate-stderr -0 tf-exec -g net.tfg --run init
    [ -z "$stderr" ]
    run --separate-stderr -0 tf-exec -g net.tfg --run ready,count -o y.rec
    [ -z "$stderr" ]
}

@test "fewer feeds than --steps, and a feed that nothing uses, are said" {
    seq 3 | tf-data csv - x=1 --batch 1 >three.rec
    run --separate-stderr -0 tf-exec -g sum.tfg --run train --feed three.rec --steps 50 \
        --save a.ckpt
    [ "$stderr" = "tf-exec: sum.tfg: the feeds end after step 3 of 50" ]
    saved a.ckpt 6
    run --separate-stderr -0 tf-exec -g sum.tfg --run train --feed three.rec --steps 3
    [ -z "$stderr" ]
    mkdir rate=1 # a path may look like NAME=VALUE, but for how it begins
    cp three.rec rate=1
    for path in "$PWD/rate=1/three.rec" ./rate=1/three.rec; do
        tf-exec -q -g sum.tfg --run train --feed "$path" --save a.ckpt
        saved a.ckpt 6
    done
    tf-graph -o two.tfg -e 'x = Placeholder{dtype = float32} z = Placeholder{dtype = float32}
        y = -x'
    run --separate-stderr -0 tf-exec -g two.tfg --fetch y --feed x=1.0 --feed z=2.0 -o y.rec
    [ "$stderr" = "tf-exec: two.tfg: --feed z: --fetch y does not use it" ]
}

large() { # a graph that counts; `many` is 20 kB of what it has counted
    tf-graph -o large.tfg - <<'EOF'
x = Placeholder{dtype = float32, shape = {-1}}
n = variable{name = "n", shape = {}, init = init.zeros}
counted = AssignAdd(n, Sum(x, 0))
many = Fill({5000}, control({counted}, function() return Identity(n) end))
entry.train = group{counted}
EOF
}

steps_of() { # FILE...
    cat "$@" | tf-show | awk '{ print $2 }' | paste -sd' '
}

@test "--fetch-limit begins the file anew between two records, and keeps one older" {
    large
    yes 1 | head -n 60 | tf-data csv - x=1 --batch 1 >ones.rec
    tf-exec -g large.tfg --run train --feed ones.rec --fetch many --fetch-limit 100k >m.rec
    [ "$(ls m*.rec)" = "m.old.rec
m.rec" ]
    for file in m.old.rec m.rec; do # at most a record and what is gathered before it is written
        [ "$(stat -c %s "$file")" -lt $((100000 + 20000 + 70000)) ]
        tf-show "$file" >/dev/null
    done
    first=$(steps_of m.old.rec | cut -d' ' -f1)
    [ "$first" -gt 1 ]
    [ "$(steps_of m.old.rec m.rec)" = "$(seq "$first" 60 | paste -sd' ')" ]
    # everything that fits is written
    tf-exec -g large.tfg --run train --feed ones.rec --fetch many --fetch-limit 10M >whole.rec
    [ "$(steps_of whole.rec)" = "$(seq 60 | paste -sd' ')" ]
    [ ! -e whole.old.rec ]
}

@test "who follows a file goes on when it is begun anew, and when another process writes it" {
    large
    mkfifo ones.csv ones.fifo
    tf-data csv - x=1 --batch 1 <ones.csv >ones.fifo 3>&- &
    tf-exec -g large.tfg --run train --feed ones.fifo --fetch many,n --fetch-limit 100k \
        >m.rec 3>&- &
    writer=$!
    exec 9>ones.csv
    timeout 60 tf-show --follow m.rec n >shown 2>err 3>&- 9>&- &
    follower=$!
    for last in 6 12 18 24; do # six are more than the limit: no file is gone before it was read
        yes 1 | head -n 6 >&9
        for _ in $(seq 200); do
            ! tail -n 1 shown | finds "^step $last " || break
            sleep 0.05
        done
        tail -n 1 shown | finds "^step $last "
    done
    [ -e m.old.rec ]
    # after a kill, the next process starts a file of its own
    kill -9 "$writer"
    exec 9>&-
    mv m.rec m.1.rec
    yes 1 | head -n 30 | tf-data csv - x=1 --batch 1 >ones.rec
    tf-exec -g large.tfg --run train --feed ones.rec --fetch many,n >m.rec
    wait "$follower"
    [[ $(tail -n 1 shown) == "step 30"* ]]
    [ ! -s err ]
}

run_large() { # BYTES [OPTION]...
    tf-exec -g large.tfg --run train --fetch many --fetch-limit "$@"
}

@test "--fetch-limit is for a file, and leaves alone what is not its own" {
    large
    yes 1 | head -n 30 | tf-data csv - x=1 --batch 1 >ones.rec
    { run_large 100k --feed ones.rec 2>err && echo >well; } | cat >piped
    [ ! -e well ]
    grep -qx "tf-exec: --fetch-limit: a limit is for a file, which stdout is not" err
    run --separate-stderr -64 run_large 100k --feed ones.rec -o m.rec
    [ "$stderr" = "tf-exec: --fetch-limit: a limit is for stdout, not for -o" ]
    run --separate-stderr -64 run_large 12 --feed ones.rec
    [ "$stderr" = "tf-exec: --fetch-limit 12: at least 4096" ]
    # another file takes the name meanwhile
    mkfifo ones.fifo
    run_large 100k --feed ones.fifo >m.rec 2>err 3>&- &
    writer=$!
    exec 9>ones.fifo
    head -c 300 ones.rec >&9
    for _ in $(seq 100); do # the first step was run
        [ -s m.rec ] && break
        sleep 0.05
    done
    mv m.rec moved.rec
    echo other >m.rec
    tail -c +301 ones.rec >&9
    exec 9>&-
    wait "$writer"
    [ "$(cat m.rec)" = other ]
    [ "$(steps_of moved.rec)" = "$(seq 30 | paste -sd' ')" ]
    grep -q 'm.rec: is another file now' err
}

@test "views do not run, but with --without views; a read still says that there is no value" {
    cat >view.lua <<'END'
v = Variable{shape = {2, 2}, dtype = float32, name = "v"}
read = Identity(v)
entry.e = Neg(Reshape(read, {4}))
END
    tf-graph view.lua >view.tfg
    tf-exec -g view.tfg --run e --dump-plan | tf-show --json >plan
    [ "$(jq -c '[.items[].kernel]' plan)" = '["neg_float32","fetch"]' ]
    tf-exec -g view.tfg --run e --dump-plan --without views | tf-show --json >plan
    [ "$(jq -c '[.items[].kernel]' plan)" = '["identity","reshape","neg_float32","fetch"]' ]
    for pass in views chains products; do
        run --separate-stderr tf-exec -g view.tfg --run e --without "$pass"
        [ "$status" -eq 65 ]
        [[ $stderr == *"node 'read' "*": Identity: variable 'v' is not initialized"* ]]
    done
}

@test "kernels check the values of variables, which may have another shape than planned" {
    cat >shape.txt <<'END'
v = Variable() {dtype=float32, shape=[1,2]}
other = Const() {dtype=float32, value=float32[640,1024](7)}
a = Assign(v, other) {validate_shape=false}
entry init = ^a
b = Const() {dtype=float32, value=float32[2](1)}
same = Const() {dtype=float32, value=float32[1,2](1)}
sum = BiasAdd(v, b)
less = Less(same, v)
pack = Pack(v, same) {axis=0}
dims = Const() {dtype=int32, value=int32[1](2)}
flat = Reshape(v, dims)
view = Neg(flat)
END
    tf-graph --text shape.txt >shape.tfg
    for node in sum less pack flat; do
        run --separate-stderr tf-exec -g shape.tfg --fetch "$node"
        [ "$status" -eq 65 ]
        [[ $stderr == *"node '$node': "*1024* ]]
    done
    run --separate-stderr tf-exec -g shape.tfg --fetch view
    [[ $status -eq 65 && $stderr == *"node 'flat': "*1024* ]]
}

@test "the gradient of a sparse cross entropy takes the memory of logits that nothing else needs" {
    cat >logits.lua <<'END'
local logits = Tanh(Variable{shape = {16, 1000}, dtype = float32, name = "v"})
loss, slope = SparseSoftmaxCrossEntropyWithLogits(logits, Cast({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
  12, 13, 14, 15, 16}, {DstT = int32}))
entry.alone, entry.beside = {Sum(slope, {0, 1})}, {Sum(slope * logits, {0, 1})}
END
    tf-graph logits.lua >logits.tfg
    peak() { tf-exec -g logits.tfg --run "$1" --dump-plan | tf-show --json | jq .peak; }
    [ "$(peak alone)" -lt 100000 ] # one matrix has 64000 bytes
    [ "$(peak beside)" -ge 128000 ]
}

@test "what slow steps fetch is written while they go on" {
    tf-graph -o slow.tfg - <<'EOF'
sum = Sum(RandomUniform({8000000}, {dtype = float32}), 0)
EOF
    timeout 60 tf-exec -g slow.tfg --fetch sum --steps 100000 >out.rec 3>&- &
    has_steps() { tf-show out.rec | finds '^step 3  sum'; }
    soon 10 has_steps
    kill $!
}

@test "a step is run again alone, with the same bits" {
    cat > net.lua << 'LUA'
local x = Placeholder{dtype = float32, shape = {-1, 4}, name = "x"}
local h = nn.dropout(nn.dense(x, 8, {activation = Relu}), 0.5, {training = true})
loss = Mean(nn.dense(h, 1) ^ 2, {0, 1})
noise = RandomStandardNormal({3}, {dtype = float32, name = "noise"})
entry.train = minimize(loss, optim.adam{rate = 0.1})
LUA
    tf-graph net.lua > net.tfg
    train() {
        tf-exec -g net.tfg --run train --fetch loss,noise "$@"
    }
    awk 'BEGIN { srand(3); for (i = 0; i < 30; i++) print rand(), rand(), rand(), rand() }' |
        tf-data csv - x=1-4 --batch 3 > train.rec
    train --feed train.rec --save ck/ --save-every 1 --save-rate 1G > all
    steps=$(tf-ckpt list ck --json | jq .step | xargs)
    for first in 1 4 7; do # whatever was saved in the background, and the feeds behind it
        [[ " $steps " == *" $first "* ]] || continue
        rm -f again.ckpt
        tf-data cut "$((first + 1))-" train.rec | train \
            --restore "ck@$first" --first-step $((first + 1)) --save again.ckpt > rest
        tf-ckpt diff ck@10 again.ckpt
        [ "$(tf-show --json rest)" = "$(tf-show --json all | tail -n $((10 - first)))" ]
    done
    # the last step alone; a run that was saved at step 9 has 9 steps
    tf-data cut 1-9 train.rec | train --save nine.ckpt > /dev/null
    tf-data cut 10 < train.rec > ten.rec
    [ "$(tf-show --json ten.rec)" = "$(tf-show --json train.rec | tail -1)" ]
    train --feed ten.rec --restore nine.ckpt --first-step 10 -n 1 \
        --save ten.ckpt > ten
    tf-ckpt diff ten.ckpt ck@10
    [ "$(tf-show --json ten)" = "$(tf-show --json all | tail -1)" ]
    [ "$(tf-ckpt show ten.ckpt | sed -n 2p | xargs)" = "step 10" ]
    # as step 1, its number without the option, it drops another half of the units
    train --feed ten.rec --restore nine.ckpt --save one.ckpt > /dev/null
    run -1 tf-ckpt diff one.ckpt ck@10
    # without feeds it is one step, too
    tf-exec -g net.tfg --fetch noise --first-step 10 | tf-show --json | jq -c .noise > random
    [ "$(cat random)" = "$(tf-show --json all | tail -1 | jq -c .noise)" ]
}

@test "steps that there are not, and first steps that somebody else knows" {
    seq 4 | tf-data csv - x=1 > a.rec
    cat a.rec a.rec > two.rec # counts on, as tf-exec does
    [ "$(tf-data cut 3,6- two.rec | tf-show --json | jq -c .x | xargs)" = '[3] [2] [3] [4]' ]
    [ "$(tf-data cut 6 two.rec | tf-show | cut -d' ' -f1,2)" = "feed 6" ]
    run --separate-stderr -65 tf-data cut 9- two.rec -o b.rec
    [ "$stderr" = "tf-data: two.rec: has no such step; its last is 8" ]
    run --separate-stderr -64 tf-data cut 0 two.rec -o b.rec
    run --separate-stderr -64 tf-data cut -o b.rec
    run --separate-stderr -64 tf-exec -g none.tfg --run train --first-step 2 --resume --save s/
    [ "$stderr" = "tf-exec: --first-step and --resume do not go together" ]
    run --separate-stderr -64 tf-exec -g none.tfg --run train --first-step -1
    for option in --first-step --steps; do
        run --separate-stderr -64 tf-exec -g none.tfg --run train $option 9223372036854775807
        [ "$stderr" = "tf-exec: --first-step and --steps: below 2^62" ]
    done
}

@test "a default of another shape than the graph says is refused when it is known" {
    cat >default.txt <<'END'
graph 1
a = Const() {dtype=int8, value=[[1,2,3],[4,5,6]]} : int8[2,3]
b = PlaceholderWithDefault(a) {dtype=int8, shape=?} : int8
c = PlaceholderWithDefault(b) {dtype=int8, shape=[3,2,3]} : int8[3,2,3]
d = Neg(c) {T=int8} : int8[3,2,3]
e = PlaceholderWithDefault(b) {dtype=int8, shape=[2,?]} : int8[2,?]
f = Neg(e) {T=int8} : int8[2,?]
END
    tf-graph --text default.txt >default.tfg
    run --separate-stderr tf-exec -g default.tfg --fetch d -o d.rec
    [ "$status" -eq 65 ]
    [[ $stderr == *"node 'c': "*": the default has shape [2,3], which is not [3,2,3]" ]]
    tf-exec -g default.tfg --fetch f | tf-show | grep -x 'step 1  f -1 -2 -3 -4 -5 -6'
}
