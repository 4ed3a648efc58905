#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# L-BFGS, of which no tool and no shard knows: it is nodes of the model's.
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
train = minimize(loss, optim.lbfgs{rate = D.rate, history = D.history})
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

@test "steps are those of the inverse Hessian as a matrix, when pairs fall off, too" {
    for how in "1 10" "0.7 3" "1 1"; do
        read -r rate history <<<"$how"
        tf-graph m.lua -D "rate=$rate" -D "history=$history" | tf-opt --keep after | tf-place >g
        trained g 14 >got
        /usr/bin/python3 "$root/tests/e2e/lbfgs.py" "$rate" "$history" 14 >expected
        near expected got 1e-9
    done
}

@test "ridge regression comes to the closed form within 1e-8" {
    sed 's/optim.sgd{.*}/optim.lbfgs{}/' "$root/examples/ridge.lua" | tf-graph - |
        tf-opt --keep difference | tf-place >g
    (cd "$root/examples" && ./feed-diabetes --epochs 60 </dev/null) |
        tf-exec -g g --run train --fetch difference | tf-show --json |
        jq -se 'first.difference > 0.5 and last.difference < 1e-8'
}

@test "on two shards it has one process' bits, and only numbers go from one to the other" {
    tf-graph m.lua -D rate=1 -D history=3 | tf-opt >m.tfg
    tf-place m.tfg | tf-exec -g - --run train --fetch loss --steps 12 -q | tf-show --json >one
    timeout 60 tf-run --workers 1 --ps 2 --mode sync --fetch loss --steps 12 --save s/ --job job \
        m.tfg 2>err 3>&- || { cat err; return 1; }
    diff <(jq -c .loss one) <(tf-show --json job/worker-0.rec | jq -c .loss)
    tf-ckpt list --json s | jq -e '.step == 12'
    [ "$(tf-ckpt show s | grep -c /lbfgs/)" = 18 ]
    printf 'task %s tcp:127.0.0.1:%d\n' ps:0 7001 ps:1 7002 worker:0 7003 >cluster
    tf-replicate --mode sync --workers 1 m.tfg | tf-place -c cluster | tf-part | tf-show --text - |
        grep ' = Recv() .*recv_device="/job:ps.* send_device="/job:ps' >between
    [ "$(grep -c . between)" -gt 10 ]
    run ! grep -v -e 'shape=\[0*\]' -e '^clock/' between # [0]: that something has been done
}

@test "what it cannot take is refused in a line" {
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
