#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Loops and conditionals of the prelude, from a script to a number.
bats_require_minimum_version 1.5.0

setup() {
    bin=$(realpath -m "$BATS_TEST_DIRNAME/../../${BUILD:-build}/bin")
    PATH=$bin:$PATH
    cd "$BATS_TEST_TMPDIR" || return 1
}

result() { # SCRIPT X: what its entry `r` gives
    tf-graph "$1" -o g.tfg
    timeout -s KILL 20 tf-exec -g g.tfg --run r --feed "x=$2" </dev/null | tf-show | tail -n 1
}

@test "a body that returns a tensor from outside ends" {
    cat >loop.lua <<'EOF'
x = Placeholder{dtype = float32, name = "x", shape = {}}
_, a = while_loop(function(i, a) return Less(i, 3) end, function(i, a) return i + 1, x end,
                  {Const(0), Const(1.5)})
entry.r = a
EOF
    [[ $(result loop.lua 7) == "step 1  a 7" ]]
}

# a = 1.5; twice: a += 0 + 1 + 2 + 3; a += 1.
@test "what depends on nothing of the loop does not run when the loop is over" {
    cat >nest.lua <<'EOF'
x = Placeholder{dtype = float32, name = "x", shape = {}}
zero = Const(0.0)
_, a = while_loop(function(i, a) return Less(i, 2) end, function(i, a)
  local _, b = while_loop(function(k, b) return Less(k, x) end,
                          function(k, b) return k + 1, b + k end, {zero, a})
  return i + 1, cond(Less(zero, x), function() return b + 1 end, function() return b end)
end, {Const(0), Const(1.5)})
entry.r = a
EOF
    [[ $(result nest.lua 4) == "step 1  a 15.5" ]]
}
