#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Pipelines: micro-batches over stages train as one process does, in the order of their schedule.
# NETS=200 tries so many random nets.
# shellcheck disable=SC2030,SC2031,SC2154  # variables of run
load ../lib/tools
load ../lib/refused
bats_require_minimum_version 1.5.0

setup() {
    use_tools
    check="$root/tests/e2e/pipeline.py"
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    export OMP_NUM_THREADS=1
    pids=()
    (cd "$root/examples" && ./feed --rows 1-1437 --shuffle --batch 64 --epochs 1) >f.rec
}

teardown() {
    kill_pids "${pids[@]}"
}

wide() { # NAME: the model of the examples in float64, to NAME.tfg
    sed 's|x / 16|Cast(x, {DstT = float64}) / 16|
         s|Const(0, {dtype = float32})|Const(0, {dtype = float64})|
         s|variable{name = "\([Wb]\)",|variable{name = "\1", dtype = float64,|' \
        "$root/examples/$1.lua" >"$1.lua"
    finds float64 "$1.lua"
    tf-graph "$1.lua" | tf-opt -q >"$1.tfg"
}

over_devices() { # GRAPH [OPTION]...: parts.tfg, and piped.tfg before it is placed
    tf-replicate --in-graph "${@:2}" "$1" >piped.tfg
    tf-place --devices CPU:0,CPU:1,CPU:2,CPU:3 piped.tfg | tf-part >parts.tfg
}

run_parts() { # RESULT [OPTION]...
    timeout 60 tf-exec -g parts.tfg --run train --feed f.rec "${@:2}" | tf-show --json >"$1"
}

in_order() { # ORDER: what the trace has
    tf-show --text piped.tfg >piped.txt
    tf-show --json trace.rec >trace.json
    /usr/bin/python3 "$check" trace piped.txt trace.json "$1"
}

values() { # CHECKPOINT: text to compare
    tf-show --json "$1" | LC_ALL=C sort
}

@test "stages of one process, made by the costs: dense, convolution, recurrent" {
    local model stages
    for model in digits digits_cnn digits_rnn; do
        wide $model
        tf-place $model.tfg | tf-exec --run train --feed f.rec --fetch loss,accuracy |
            tf-show --json >one.json
        for stages in 1 2 4; do
            over_devices $model.tfg 4 --pipeline 1f1b --stages $stages --towers '/device:CPU:*'
            [ "$(tf-show parts.tfg | grep -c '^graph')" = $stages ]
            run_parts many.json --fetch loss,accuracy --trace trace.rec
            # Adam divides by values close to 0
            /usr/bin/python3 "$check" close 1e-9 one.json many.json
            in_order 1f1b
        done
    done
}

@test "random nets on the script's devices: every order, optimizer and number of micro-batches" {
    local seed stages batches order
    for ((seed = 1; seed <= ${NETS:-6}; seed++)); do
        stages=$((seed % 3 + 2)) batches=$((seed * 7 % 5 + 2))
        order=$(printf '%s\n' 1f1b gpipe 1f1b,flight=2 | sed -n "$((seed * 5 % 3 + 1))p")
        /usr/bin/python3 "$check" net $seed $stages >net.lua
        tf-graph net.lua | tf-opt -q >net.tfg
        /usr/bin/python3 -c "import numpy as np
r, n = np.random.default_rng($seed), 13 + $seed % 7
np.save('x.npy', r.normal(size=(n, 8))); np.save('y.npy', r.integers(0, 10, n).astype('int32'))"
        feeds=(--feed x=x.npy --feed y=y.npy -n 5 --fetch loss)
        tf-place --devices CPU:0,CPU:1,CPU:2,CPU:3 net.tfg | tf-part >one.tfg
        tf-exec -g one.tfg --run train "${feeds[@]}" --save one.ckpt | tf-show --json >one.json
        over_devices net.tfg $batches --pipeline "$order"
        for again in 1 2; do
            timeout 60 tf-exec -g parts.tfg --run train "${feeds[@]}" --trace trace.rec \
                --save many$again.ckpt | tf-show --json >many.json
        done
        values one.ckpt >one.txt
        values many1.ckpt >many.txt
        echo "net $seed: $stages stages, $batches micro-batches, $order"
        /usr/bin/python3 "$check" close 1e-10 one.txt many.txt
        /usr/bin/python3 "$check" close 1e-12 one.json many.json
        in_order "$order"
        diff many.txt <(values many2.ckpt) # each run has the same bits
    done
}

@test "stages in three processes: one drives, the others serve; resumed from a checkpoint" {
    places_on_cpus "who serves has the devices that a cluster file names"
    export TF_CLUSTER=c
    printf 'task worker:%s unix:w%s\n' 0 0 1 1 2 2 >c
    wide digits_cnn
    tf-place digits_cnn.tfg | tf-exec --run train --feed f.rec --fetch loss --save one.ckpt |
        tf-show --json >one.json
    tf-replicate --in-graph 4 --pipeline 1f1b --stages 3 -c c digits_cnn.tfg | tf-place -c c |
        tf-part >parts.tfg
    for k in 1 2; do
        tf-exec serve --task worker:$k 2>w$k.err 3>&- &
        pids+=($!)
    done
    (cd "$root/examples" && ./feed --rows 1-1437 --shuffle --batch 64 --epochs 1 --steps 10) >a.rec
    timeout 60 tf-exec -g parts.tfg --task worker:0 --run train --feed a.rec --fetch loss \
        --save half.ckpt 3>&- | tf-show --json >two.json
    [ "$(wc -l <two.json)" = 10 ]
    head -n 10 one.json >ten.json
    /usr/bin/python3 "$check" close 1e-10 ten.json two.json
    # the checkpoint equals that of a single process, which resumes from it
    tf-place digits_cnn.tfg | tf-exec --run train --feed a.rec --save ten.ckpt
    values half.ckpt >half.txt
    values ten.ckpt >ten.txt
    /usr/bin/python3 "$check" close 1e-9 half.txt ten.txt
    tf-place digits_cnn.tfg | tf-exec --run train --feed a.rec --restore half.ckpt --save x.ckpt
    timeout 60 tf-exec -g parts.tfg --task worker:0 --run train --feed a.rec --restore ten.ckpt \
        --save y.ckpt 3>&-
    values x.ckpt >x.txt
    values y.ckpt >y.txt
    /usr/bin/python3 "$check" close 1e-8 x.txt y.txt
}

@test "a worker with a pipeline is killed under tf-run: the same bits" {
    cp -r "$root/examples/." .
    printf 'task %s\n' 'worker:0 unix:w0 device=CPU:0,CPU:1' 'worker:1 unix:w1 device=CPU:0,CPU:1' \
        'ps:0 unix:p0 device=CPU:0,CPU:1' >cluster
    tf-graph digits.lua | tf-opt -q |
        tf-replicate --in-graph 2 --pipeline 1f1b --stages 2 --towers '/device:CPU:*' >piped.tfg
    job() {
        timeout -k 5 90 tf-run -c cluster --mode sync --fetch loss --save "$1" --job job \
            piped.tfg -- "${@:2}" --rows 1-1437 --shuffle --batch 32 --epochs 4 3>&-
    }
    job whole/ ./feed
    rm -rf job
    job killed/ "$root/tests/lib/halfway" "$PWD/go" ./feed 2>err &
    pids+=($!)
    soon 30 test -s job/worker-1.rec
    kill -9 "$(cat job/worker-1.pid)"
    touch go
    wait $!
    grep 'restart 1 of' err
    diff <(values whole/ | grep -v '^{"clock:') <(values killed/ | grep -v '^{"clock:')
}

@test "one forward, one backward keeps less memory than all forward first" {
    cat >m.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 64}}
y = Placeholder{dtype = int32, shape = {-1}}
local h = x
for i = 1, 8 do
  device("/device:CPU:" .. (i - 1) // 4, function()
    h = nn.dense(h, 4096, {name = "h" .. i, activation = Tanh})
    h = Reshape(Sum(Reshape(Tanh(h * 2) * Tanh(h * 3), {-1, 64, 64}), {2}), {-1, 64})
  end)
end
device("/device:CPU:1", function() loss = nn.cross_entropy(nn.dense(h, 10, {name = "o"}), y) end)
entry.train = minimize(loss, optim.sgd{rate = 0.01})
LUA
    tf-graph m.lua | tf-opt -q >m.tfg
    /usr/bin/python3 -c "import numpy as np; r = np.random.default_rng(1)
np.save('x.npy', r.normal(size=(512, 64)).astype('float32'))
np.save('y.npy', r.integers(0, 10, 512).astype('int32'))"
    for order in 1f1b gpipe; do
        over_devices m.tfg 16 --pipeline "$order"
        /usr/bin/python3 - <<'PY' >$order.kb
import resource, subprocess
subprocess.run("tf-exec -q -g parts.tfg --run train --feed x=x.npy --feed y=y.npy -n 2 --threads 1",
               shell=True, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
PY
    done
    echo "1f1b $(cat 1f1b.kb) KiB, gpipe $(cat gpipe.kb) KiB"
    [ "$(cat 1f1b.kb)" -lt $(($(cat gpipe.kb) * 3 / 4)) ]
}

@test "what cannot be is refused in a line" {
    tf-graph "$root/examples/digits.lua" | tf-opt -q >m.tfg
    refused 64 "tf-replicate: --pipeline '2f' is none of 1f1b, 1f1b,flight=N, gpipe" \
        'tf-replicate --in-graph 2 --pipeline 2f m.tfg'
    refused 64 'tf-replicate: --pipeline is about the towers of --in-graph' \
        'tf-replicate --pipeline 1f1b m.tfg'
    refused 64 'tf-replicate: --stages is about a --pipeline' \
        'tf-replicate --in-graph 2 --stages 2 m.tfg'
    refused 65 'tf-replicate: m.tfg: no node asks for a device, which would be a stage of the *' \
        'tf-replicate --in-graph 2 --pipeline 1f1b m.tfg'
    refused 65 'tf-replicate: m.tfg: --stages 90: the model has * nodes that compute of variables' \
        'tf-replicate --in-graph 2 --pipeline 1f1b --stages 90 m.tfg'
    cat >back.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 4}}
local function on(k, f) device("/device:CPU:" .. k, f) end
on(0, function() a = nn.dense(x, 4, {name = "a"}) end)
on(1, function() b = nn.dense(a, 4, {name = "b"}) end)
on(0, function() c = nn.dense(b, 4, {name = "c"}) end)
loss = Mean(c, {0, 1})
entry.train = minimize(loss, optim.sgd{rate = 1})
LUA
    refused 65 "tf-replicate: *: node 'c/MatMul' (back.lua:*): MatMul: it is on stage 0 \
(/device:CPU:0) and needs 'b' on stage 1 (/device:CPU:1), but a pipeline \
goes from each stage to later ones only" \
        'tf-graph back.lua | tf-replicate --in-graph 2 --pipeline 1f1b'
}
