#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# In-graph replication: towers share each batch, and training gives the same result as without them.
# The last batch of an epoch of the digits has 29 rows, of which towers get 14 and 15.
# shellcheck disable=SC2030,SC2031,SC2154  # variables of run
load ../lib/refused
bats_require_minimum_version 1.5.0

setup() {
    root=$(realpath "$BATS_TEST_DIRNAME/../..")
    PATH=$(realpath -m "$root/${BUILD:-build}/bin"):$PATH
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    export OMP_NUM_THREADS=1
    pids=()
    (cd "$root/examples" && ./feed --rows 1-1437 --shuffle --batch 64 --epochs 5 --steps 100) >f.rec
}

teardown() {
    local pid
    for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
}

alone() { # GRAPH RESULT [OPTION]...: what there is to compare with
    tf-place "$1" | tf-exec --run train --feed f.rec "${@:3}" | tf-show --json >"$2"
}

two_devices() { # GRAPH: parts
    tf-replicate --in-graph 2 --towers '/device:CPU:*' "$1" |
        tf-place --devices CPU:0,CPU:1 | tf-part
}

# close NAME FIRST REST RESULT RESULT: relative difference, in the first step and in the others
close() {
    paste <(jq ".$1" "$4") <(jq ".$1" "$5") | awk -v first="$2" -v rest="$3" '
        { d = ($1 - $2) / ($1 ? $1 : 1); d = d < 0 ? -d : d
          if (NR > 1 && d > most) most = d
          if (NR == 1) begin = d }
        END { print NR " steps, " begin " in the first, at most " most + 0 " after"
              exit !(NR > 1 && begin <= first && most <= rest) }'
}

@test "two towers on two devices train as one, through nets, convolutions and loops" {
    local model
    # Adam turns a rounding error into a step where a gradient is almost 0, as below a Relu that is
    # just off: in float64 such steps stay small.
    sed 's|Reshape(x / 16|Reshape(Cast(x, {DstT = float64}) / 16|' \
        "$root/examples/digits_cnn.lua" >cnn.lua
    grep -q float64 cnn.lua
    for model in "$root/examples/digits" cnn "$root/examples/digits_rnn"; do
        tf-graph "$model.lua" | tf-opt >m.tfg
        alone m.tfg one.json --fetch loss,accuracy
        two_devices m.tfg >parts.tfg
        [ "$(tf-show parts.tfg | grep -c '^graph')" = 2 ]
        tf-exec -g parts.tfg --run train --feed f.rec --fetch loss,accuracy |
            tf-show --json >two.json
        [ "$(wc -l <two.json)" = 100 ]
        close loss 1e-6 1e-4 one.json two.json
        close accuracy 1e-6 1e-4 one.json two.json
    done
}

@test "towers in two processes, variables on two shards: one drives, the other serves" {
    export TF_CLUSTER=c
    printf 'task %s\n' 'ps:0 unix:p0' 'ps:1 unix:p1' 'worker:0 unix:w0' 'worker:1 unix:w1' >c
    tf-graph "$root/examples/digits.lua" | tf-opt >m.tfg
    alone m.tfg one.json --fetch loss
    tf-replicate --in-graph 2 m.tfg | tf-place -c c | tf-part >parts.tfg
    for task in ps:0 ps:1; do
        tf-ps serve --task $task 2>"$task.err" 3>&- &
        pids+=($!)
    done
    tf-exec serve --task worker:1 2>w1.err 3>&- &
    pids+=($!)
    timeout 60 tf-exec -g parts.tfg --task worker:0 --run train --fetch loss --feed f.rec 3>&- |
        tf-show --json >two.json
    [ "$(wc -l <two.json)" = 100 ]
    close loss 1e-6 1e-4 one.json two.json
    # the second tower works: gradients of both are on the shards
    tf-show --text parts.tfg >parts.txt
    grep -q '^tower_1/hidden/MatMul = .*@/job:worker/task:1/device:CPU:0 ' parts.txt
    grep -q '^towers/join/hidden/W/gradient/AddN = .*@/job:ps/task:[01]/device:CPU:0 ' parts.txt
    grep -q '^hidden/W/gradient = Div.*@/job:ps/task:[01]/device:CPU:0 ' parts.txt
}

@test "workers with two towers each: replicated in the graph, then between graphs" {
    export TF_CLUSTER=c
    printf 'task worker:0 unix:w0 device=CPU:0,CPU:1\ntask ps:0 unix:p0\n' >c
    tf-graph "$root/examples/digits.lua" | tf-opt >m.tfg
    alone m.tfg one.json --fetch loss
    tf-replicate --in-graph 2 --towers '/device:CPU:*' m.tfg | tf-replicate --mode sync |
        tf-place -c c | tf-part >parts.tfg
    tf-ps serve --task ps:0 2>p.err 3>&- &
    pids+=($!)
    timeout 60 tf-exec -g parts.tfg --task worker:0 --run train --fetch loss --feed f.rec 3>&- |
        tf-show --json >two.json
    [ "$(wc -l <two.json)" = 100 ]
    close loss 1e-6 1e-4 one.json two.json
}

@test "rows of tables, a clipped norm, a schedule, weight decay: as without towers" {
    cat >m.lua <<'LUA'
y = Placeholder{dtype = int32, shape = {-1}}
x = Placeholder{dtype = float32, shape = {-1, 64}}
local e = nn.embedding(y, 10, 8, {name = "table"})
h = nn.dense(Concat(1, {x / 16, e}), 12, {name = "h", activation = Tanh})
local out = nn.dense(h, 10, {name = "out"})
local w = variable{name = "w", shape = {12}, init = 0.5}
local decay = Sum(Square(w), {0})
loss = nn.cross_entropy(out + Sum(h * w, {1}, {keep_dims = true}), (y + 3) % 10) + 0.01 * decay
mean_h = Mean(h, 0)
n = global_step()
rate = schedule.inverse_time{step = n, rate = 0.5, steps = 10, decay = 0.5}
local train = minimize(loss, optim.momentum{rate = rate}, {global_step = n, clip = 1})
entry.train = {train, rate, n, mean_h}
entry.hidden = h
LUA
    tf-graph m.lua | tf-opt >m.tfg
    alone m.tfg one.json --fetch loss,rate,mean_h --save one.ckpt
    two_devices m.tfg >parts.tfg
    tf-exec -g parts.tfg --run train --feed f.rec --fetch loss,rate,mean_h --save two.ckpt |
        tf-show --json >two.json
    close loss 1e-6 1e-4 one.json two.json
    close rate 0 0 one.json two.json
    close 'mean_h[3]' 1e-5 1e-3 one.json two.json
    # a tensor with a value per row keeps the rows' order, and a batch may have a single row
    for rows in 5 1; do
        (cd "$root/examples" && ./feed --batch $rows --steps 1) >few.rec
        tf-place m.tfg | tf-exec --run hidden --feed few.rec --restore one.ckpt |
            tf-show --json >one.json
        tf-exec -g parts.tfg --run hidden --feed few.rec --restore one.ckpt |
            tf-show --json >two.json
        [ "$(jq -c .h two.json | tr ']' '\n' | grep -c '[0-9]')" = $rows ]
        # a product of fewer rows may add in another order
        jq -es '[.[] | .h | flatten] | transpose | length > 0 and
            all(.[]; .[0] != null and .[1] != null and (.[0] - .[1] | fabs) < 1e-6)' \
            one.json two.json >/dev/null
    done
}

@test "each row has random numbers of its own" {
    cat >m.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 1000}}
local w = variable{name = "w", shape = {1000}, init = 1}
noise = RandomUniform(Shape(x), {dtype = float32})
loss = Mean(x * w * noise, {0, 1})
entry.train = {minimize(loss, optim.sgd{rate = 0.1}), noise}
LUA
    tf-graph m.lua | tf-opt >m.tfg
    two_devices m.tfg >parts.tfg
    tf-op Fill '[2,1000]' 1.0 -o x.npy
    tf-place m.tfg | tf-exec --run train --feed x=x.npy | tf-show --json >one.json
    tf-exec -g parts.tfg --run train --feed x=x.npy | tf-show --json >two.json
    [ "$(jq '.noise | length' two.json)" = 2 ]
    # the first tower's are those of the script
    [ "$(jq -c '.noise[0]' two.json)" = "$(jq -c '.noise[0]' one.json)" ]
    jq -e '[.noise[0], .noise[1]] | transpose | map(select(.[0] == .[1])) | length < 5' two.json
}

@test "what cannot be is refused in a line" {
    tf-graph "$root/examples/digits.lua" | tf-opt >m.tfg
    refused 64 'tf-replicate: --in-graph is a number of towers, 2 to 1024' \
        'tf-replicate --in-graph 1 m.tfg'
    refused 64 'tf-replicate: --in-graph has no workers, for whom --mode would be' \
        'tf-replicate --in-graph 2 --mode async m.tfg'
    local where='the towers of --in-graph are, or the tiles of --grid'
    refused 64 "tf-replicate: --towers says where $where" \
        "tf-replicate --towers '/device:CPU:*' m.tfg"
    local text="--towers 'CPU:\*' is no device with a '\*' for the tower's number"
    refused 64 "tf-replicate: m.tfg: $text" \
        "tf-replicate --in-graph 2 --towers 'CPU:*' m.tfg"
    sed 's/{-1, 64}/{64, 64}/; s/shape = {-1}}/shape = {64}}/' \
        "$root/examples/digits.lua" >fixed.lua
    refused 65 "tf-replicate: stdin: nothing that the entry 'train' is fed has any number of rows \
(a first dimension of -1), which towers could share" \
        'tf-graph fixed.lua | tf-replicate --in-graph 2'
    sed 's/, shape = {-1}}/}/' "$root/examples/digits.lua" >open.lua
    refused 65 "tf-replicate: stdin: node 'y' (open.lua:4): Placeholder: towers get a part of its \
rows or all of it, which its shape has to tell" 'tf-graph open.lua | tf-replicate --in-graph 2'
    two_devices m.tfg >parts.tfg
    (cd "$root/examples" && ./feed --batch 1 --steps 1) >one.rec
    refused 65 "tf-exec: parts.tfg: step 1: *'towers/has_rows_for_all/x/Assert'*" \
        'tf-exec -g parts.tfg --run train --feed one.rec'
}
