#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The effect of scope, device, control, colocate and container on the nodes that the prelude makes.
# shellcheck disable=SC2154  # stderr is of run
bats_require_minimum_version 1.5.0
load ../lib/tools

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
}

# SCOPES=N: the number of scripts.
@test "random scripts: every node has what a rule written apart says" {
    python3 "$root/tests/tools/scopes.py" 1 "${SCOPES:-25}"
}

@test "a layer, its variables, gradients and updates are in the scope and on the device in force" {
    cat >m.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {4, 3}}
scope("a", function() device("/job:worker/task:*", function()
  local h = nn.batch_norm(nn.dense(x, 2, {activation = Relu}))
  local loss = nn.mse(h, 0.5)
  minimize(loss, optim[D.rule]{}, {clip = 1, global_step = global_step()})
end) end)
LUA
    for rule in sgd momentum adagrad adadelta rmsprop adam ftrl lbfgs; do
        tf-graph -D "rule=$rule" m.lua | tf-show --text >"$rule.txt"
        grep -v '^x = ' "$rule.txt" | grep ' = .*(' | grep -v '@?/job:worker/task:\* ' && return 1
        grep -v '^x = ' "$rule.txt" | grep ' = .*(' | grep -vE '^(a|ready)/' && return 1
        grep -q '^a/train = NoOp' "$rule.txt"
    done
    grep -q '^a/dense/W/adam/m/initial/Fill = ' adam.txt
}

@test "a loop within control waits, whichever variable its condition depends on" {
    cat >m.lua <<'LUA'
local v = variable{name = "v", shape = {}, init = 1}
local set = Assign(v, Const(5.0))
control({set}, function()
  local s = while_loop(function(s, i) return Less(i, 3) end,
                          function(s, i) return s + v, i + 1 end, {v, 0})
  y = s
end)
local t = while_loop(function(s, i) return Less(i, 3) end, function(s, i)
  return control({set}, function() return s + Identity(v.initial) end), i + 1
end, {0.0, 0})
z = t
LUA
    tf-graph m.lua | tf-exec --fetch y,z | tf-show >out
    [ "$(cat out)" = "step 1  y 20  z 3" ]
}

@test "what leaves the tasks of a job for one of them is named" {
    printf 'task worker:0 unix:w0\ntask worker:1 unix:w1\n' >c
    cat >m.lua <<'LUA'
device("/job:worker/task:*", function()
  w = variable{name = "w", shape = {2}, init = 0.5}
  loss = Sum(collective.all_reduce(w), {0})
end)
device("/job:worker/task:1", function() y = loss * 2 end)
LUA
    run --separate-stderr -65 bash -c 'tf-graph m.lua | tf-place -c c | tf-part >parts.tfg'
    [ "$stderr" = "tf-part: stdin: node 'loss' (m.lua:3): is on \
/job:worker/task:*/device:CPU:0, but what takes it on /job:worker/task:1/device:CPU:0: both must \
ask for one in each task, or for the same task" ]
}
