#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Optimizers are nodes of the model; shards run them beside their variables and know none.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    export OMP_NUM_THREADS=1
    ln -s "$root/examples/data" data
    cat >m.lua <<'LUA'
local function waves(n, f)
  local list = {}
  for i = 1, n do list[i] = f(i) end
  return Const(list, {dtype = float64})
end
local x = Reshape(waves(48, math.sin), {12, 4})
local y = Reshape(waves(36, function(i) return math.cos(2 * i) end), {12, 3})
w = variable{name = "W", init = Reshape(0.3 * waves(12, math.sin), {4, 3})}
b = variable{name = "b", shape = {3}, dtype = float64}
loss = L2Loss(Tanh(MatMul(x, w) + b) - y) / 12
local kind = D.optimizer or "lbfgs"
local function lion(v, g) -- Chen et al. 2023
  local m = slot(v, "lion/m", 0)
  return group{AssignSub(v, D.rate * Sign(0.9 * m + 0.1 * g)), Assign(m, 0.99 * m + 0.01 * g)}
end
train = minimize(loss, kind == "lion" and lion or
                       optim[kind]{rate = D.rate, history = kind == "lbfgs" and D.history or nil})
entry.train = train
after = control({train}, function() return Concat(0, {Reshape(w, {12}), Identity(b)}) end)
LUA
}

# W and b after each of N steps, a line for each
trained() { # GRAPH N
    tf-exec -g "$1" --fetch after --steps "$2" | tf-show --json | jq -r '.after | join(" ")'
}

near() { # FILE FILE BOUND
    awk -v bound="$3" '
        NR == FNR { line[FNR] = $0; next }
        { n = split(line[FNR], a)
          for (i = 1; i <= NF; i++) { d = a[i] - $i; if (d < 0) d = -d; if (d > most) most = d }
          count += n == NF }
        END { if (count != FNR || most > bound) { print count " lines, by up to " most; exit 1 } }
    ' "$1" "$2"
}

@test "L-BFGS takes the steps of the inverse Hessian as a matrix, when pairs fall off, too" {
    for how in "1 10" "0.7 3" "1 1"; do
        read -r rate history <<<"$how"
        tf-graph m.lua -D "rate=$rate" -D "history=$history" | tf-opt --keep after | tf-place >g
        trained g 14 >got
        /usr/bin/python3 "$root/tests/e2e/optimizers.py" "$rate" "$history" 14 >expected
        near expected got 1e-9
    done
}

@test "ridge regression by L-BFGS comes to the closed form within 1e-8" {
    sed 's/optim.sgd{.*}/optim.lbfgs{}/' "$root/examples/ridge.lua" | tf-graph - |
        tf-opt --keep difference | tf-place >g
    (cd "$root/examples" && ./feed-diabetes --epochs 60 </dev/null) |
        tf-exec -g g --run train --fetch difference | tf-show --json |
        jq -se 'first.difference > 0.5 and last.difference < 1e-8'
}

# job OPTIMIZER STEPS: one worker and two shards, each of which has a variable; prints losses
job() {
    tf-graph m.lua -D rate=0.05 -D "optimizer=$1" | tf-opt >m.tfg
    rm -rf job s
    timeout 60 tf-run --workers 1 --ps 2 --mode sync --fetch loss --steps "$2" --save s/ --job job \
        m.tfg 2>err 3>&- || { cat err; return 1; }
    tf-show --json job/worker-0.rec | jq -c .loss
}

@test "every optimizer has on two shards the bits of one process" {
    kinds=$(sed -n 's/^function optim\.\([a-z]*\)(.*/\1/p' "$root"/ops/prelude/optim*.lua)
    [ "$(wc -w <<<"$kinds")" -ge 8 ]
    for kind in $kinds lion; do
        job "$kind" 8 >got
        tf-place m.tfg | tf-exec -g - --run train --fetch loss --steps 8 -q | tf-show --json |
            jq -c .loss >one
        [ "$(wc -l <one)" = 8 ]
        diff one got
        tf-ckpt list --json s | jq -e '.step == 8'
    done
}

@test "of L-BFGS each shard has its variables' history, and sends the other only numbers" {
    tf-graph m.lua -D rate=1 -D history=3 | tf-opt >m.tfg
    printf 'task %s tcp:127.0.0.1:%d\n' ps:0 7001 ps:1 7002 worker:0 7003 >cluster
    tf-replicate --mode sync --workers 1 m.tfg | tf-place -c cluster | tf-part | tf-show --text - >p
    for place in W/lbfgs/step1.*ps/task:0 W/lbfgs/change3.*ps/task:0 \
        b/lbfgs/step1.*ps/task:1 b/lbfgs/change3.*ps/task:1; do
        grep -q "^$place" p
    done
    grep ' = Recv() .*recv_device="/job:ps.* send_device="/job:ps' p >between
    [ "$(grep -c . between)" -gt 10 ]
    run -1 grep -v -e 'shape=\[0*\]' -e '^clock/' between # [0]: that something has been done
}

@test "what L-BFGS cannot take is refused in a line" {
    run --separate-stderr tf-graph -e 'local w = variable{name = "w", shape = {2}}
        local v = variable{name = "v", shape = {2}, dtype = float64}
        entry.t = minimize(L2Loss(w) + Cast(L2Loss(v), {DstT = float32}), optim.lbfgs{})'
    [ "$status" -eq 65 ]
    # shellcheck disable=SC2154  # of run
    [[ $stderr == *"'w' is float32 and 'v' is float64: its variables must be of one type" ]]
    run --separate-stderr tf-graph m.lua -D history=0
    [ "$status" -eq 65 ]
    [[ $stderr == *"optim.lbfgs: history"* ]]
    [ "$(wc -l <<<"$stderr")" -eq 1 ]
}
