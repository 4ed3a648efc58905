#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Collectives in graphs, and their gradients, among three workers (collective.lua): results equal,
# bit for bit, slices and sums in one process, and gradients agree with differences of the losses.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools
load ../lib/workers

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    pids=()
    export TF_CLUSTER=c OMP_NUM_THREADS=1
    for i in 0 1 2; do echo "task worker:$i unix:w$i"; done >c
}

teardown() {
    kill_pids "${pids[@]}"
}

graph() { # OPTION...
    tf-graph "$@" "$root/tests/e2e/collective.lua" | tf-opt
}

# exchange OP ROWS COLS: runs three workers with so many rows; wN.txt has their results if all
# succeed
exchange() {
    local i rows
    IFS=, read -ra rows <<<"$2"
    graph -D "op=$1" -D "rows=$2" -D "cols=$3" | tf-place -c c | tf-part >parts.tfg
    for i in 0 1 2; do export "FEED$i=--feed k=$i --feed rows=${rows[i]}"; done
    among 3 --fetch y,g,slope,rise
}

# alike OP ROWS COLS: the same bits as in one process
alike() {
    local i name
    exchange "$@"
    graph -D "op=$1" -D "rows=$2" -D "cols=$3" -D one=true | TF_CLUSTER='' tf-place |
        tf-exec --fetch y0,y1,y2,g0,g1,g2 | tf-show --json >one.txt
    for i in 0 1 2; do
        for name in y g; do
            cmp <(jq -c ".$name" "w$i.txt") <(jq -c ".$name$i" one.txt) || {
                echo "$*: $name of worker $i"
                return 1
            }
        done
    done
}

# the derivative of the sum of the losses, on all workers
slopes() {
    local i
    for i in 0 1 2; do
        jq -e '.slope as $a | .rise as $b | ($a - $b) / $b | fabs < 1e-6' "w$i.txt" >/dev/null || {
            jq -c '[.slope, .rise]' "w$i.txt"
            return 1
        }
    done
}

@test "values and gradients of every collective: one process's, bit for bit, and differences'" {
    while read -r op rows; do
        alike "$op" "$rows" 2
        slopes || { echo "$op"; false; }
    done <<'OPS'
broadcast 4,4,4
gather 5,3,0
scatter 0,7,2
reduce_scatter 5,5,5
mean_scatter 4,4,4
all_gather 5,0,3
all_to_all 7,7,7
all_reduce 4,4,4
mean_reduce 4,4,4
rows 3,4,5
mean_rows 1,2,3
part 2,2,2
sum_part 7,7,7
mean_part 1,1,1
OPS
}

# The device and colocation in force also hold for gradients and the optimizer; scope and control
# within the loop's body change no value.
@test "every collective trains in a loop as in the same iterations written out" {
    cat >m.lua <<'END'
local function apply(x)
  local reductions = {mean_reduce = "mean", rows = "rows", mean_rows = "mean_rows",
                      part = "part", sum_part = "sum_part", mean_part = "mean_part"}
  if D.op == "mean_scatter" then return collective.reduce_scatter(x, "mean") end
  if reductions[D.op] then return collective.all_reduce(x, reductions[D.op]) end
  return collective[D.op](x)
end
local function within(x)
  if not D.within then return apply(x) end
  local before = Identity(x * 0)
  return scope("outer", function()
    return control({before}, function()
      return device("/job:worker/task:*/device:CPU:0", function()
        return scope("inner", function() return apply(x) end)
      end)
    end)
  end)
end
local function step(s, w, v) return s * 0.5 + Sum(within(w * s + v), {0}) end
device("/job:worker/task:*", function()
  w = variable{name = "w", shape = {6}, init = 0.25}
  v = variable{name = "v", shape = {6}, init = 0.125}
  local s = Placeholder{dtype = float32, shape = {}, name = "k"}
  if D.unrolled then
    for _ = 1, 3 do s = step(s, w, v) end
  else
    local _
    _, s = while_loop(function(i) return Less(i, 3) end,
                      function(i, s) return i + 1, step(s, w, v) end, {0, s})
  end
  loss = Square(s - 3)
  entry.train = minimize(loss, optim.momentum{rate = 0.001}, {clip = 1})
end)
END
    for ((i = 0; i < 3; i++)); do export "FEED$i=--feed k=0.$i"; done
    for op in broadcast gather scatter reduce_scatter mean_scatter all_gather all_to_all \
        all_reduce mean_reduce rows mean_rows part sum_part mean_part; do
        for how in "" "-D unrolled=true" "-D within=true" "-D within=true -D unrolled=true"; do
            # shellcheck disable=SC2086  # options, or none
            tf-graph -D "op=$op" $how m.lua | tf-opt | tf-place -c c | tf-part >parts.tfg
            among 3 --run train --fetch loss,w,v --steps 3
            cat w?.txt >"got$how"
            cmp got "got$how" || { echo "$op $how"; false; }
        done
    done
}

@test "as well of large values, in blocks" {
    alike broadcast 7,7,7 9001
    alike gather 5,33,0 9001
    alike scatter 0,32,2 9001
    alike mean_scatter 11,11,11 9001
    alike all_gather 15,0,1 9001
    alike all_to_all 32,32,32 9001
}

@test "rows that do not fit are refused by all workers" {
    run -65 exchange all_to_all 3,3,4 2
    for i in 0 1 2; do
        grep -q "a member brings 4 rows to be parted, another 3" "w$i.err"
    done
}

@test "a script is told what a root is, and what has no gradient" {
    echo 'collective.gather(Const({1, 2}), -1)' >root.lua
    run -65 --separate-stderr tf-graph root.lua
    [[ $stderr == *"root.lua:1: collective.gather: the root is the rank of a worker, not -1" ]]
    echo 'x = Const({1, 2}, {dtype = float32})
gradients(Sum(collective.all_reduce(x, "first"), {0}), x)' >first.lua
    run -65 --separate-stderr tf-graph first.lua
    [[ $stderr == *"there is no gradient of reduction 'first'"* ]]
}

# Each worker has some rows of the batch, and its layer sees all of them.
@test "replicated training may send what a layer makes from worker to worker" {
    cat >m.lua <<'END'
x = Placeholder{dtype = float32, shape = {6, 2}}
w = variable{shape = {2, 1}, init = 0.5}
centred = x - collective.all_reduce(x, "mean")
y = MatMul(collective.all_gather(centred), w)
loss = Mean(Square(y - 1), {0, 1})
entry.train = minimize(loss, optim.sgd{rate = 0.1})
END
    tf-graph m.lua | tf-opt >m.tfg
    tf-replicate --mode allreduce m.tfg | tf-place -c c | tf-part >parts.tfg
    for i in 0 1 2; do
        export "FEED$i=--feed x=[[1,$i],[2,1],[$i,3],[1,1],[0,1],[1,0]]"
    done
    among 3 --run train --fetch loss,w -n 9
    for i in 0 1 2; do jq -c .w "w$i.txt" >"w$i.values"; done
    [ "$(wc -l <w0.values)" -eq 9 ]
    cmp w0.values w1.values
    cmp w0.values w2.values
    run -65 --separate-stderr tf-replicate m.tfg
    [[ $stderr == *"AllReduce: only with --mode allreduce"* ]]
}
