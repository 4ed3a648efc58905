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

# Newton's method with derivatives of the iteration's own values. The roots: sqrt(2), and the cube
# root of 2, where the slope of a^4/4 - 2a is 0; a derivative of the whole loop: d sqrt(x)/dx.
@test "gradients in a loop's body, once and twice" {
    cat >newton.lua <<'EOF'
x = Placeholder{dtype = float64, name = "x", shape = {}}
local one = Const(1.0, {dtype = float64})
_, root = while_loop(function(i, a) return Less(i, 8) end, function(i, a)
  local f = a * a - x
  return i + 1, a - f / gradients(f, a)
end, {Const(0), one})
_, least = while_loop(function(i, a) return Less(i, 20) end, function(i, a)
  local slope = gradients(Square(Square(a)) / 4 - x * a, a)
  return i + 1, a - slope / gradients(slope, a)
end, {Const(0), one})
entry.r = Pack({root, least, gradients(root, x)})
EOF
    [[ $(result newton.lua 2) == "step 1  Pack 1.41421 1.25992 0.353553" ]]
}

# c += d(c x^2)/dx = 2cx, three times; d^8 differentiated through an inner loop, twice; a branch of
# each kind, twice; and a condition that takes the slope of a^3 - 3a, which is 0 at 1.
@test "gradients in a loop by what comes from outside, through loops and branches, in conditions" {
    cat >inner.lua <<'EOF'
x = Placeholder{dtype = float64, name = "x", shape = {}}
local one = Const(1.0, {dtype = float64})
_, outside = while_loop(function(i, c) return Less(i, 3) end, function(i, c)
  return i + 1, c + gradients(x * x * c, x)
end, {Const(0), one})
_, power = while_loop(function(i, d) return Less(i, 2) end, function(i, d)
  local _, p = while_loop(function(k, p) return Less(k, 3) end,
                          function(k, p) return k + 1, p * p end, {Const(0), d})
  return i + 1, gradients(p, d) / 64
end, {Const(0), x})
_, branches = while_loop(function(i, d) return Less(i, 4) end, function(i, d)
  local p = cond(Less(i, 2), function() return d * d end, function() return 3 * d end)
  return i + 1, d * gradients(p, d)
end, {Const(0), x})
local function slope(a) return gradients(a * a * a - 3 * a, a) end
level = while_loop(function(a) return Greater(slope(a), 1e-9) end, function(a)
  return cond(Less(a, 9), function() return a - slope(a) / (6 * a) end,
              function() return a / 2 end)
end, {x})
entry.r = Pack({outside, power, branches, level})
EOF
    [[ $(result inner.lua 2) == "step 1  Pack 125 3.35544e+07 1152 1" ]]
}

# With one iteration at a time output is in order, though nothing else orders it.
@test "parallel_iterations = 1 keeps the order of effects" {
    cat >print.lua <<'EOF'
x = Placeholder{dtype = float32, name = "x", shape = {}}
_, s = while_loop(function(i, s) return Less(i, 300) end, function(i, s)
  local seen = Print(i, {i}, {message = "at "})
  local slow = Sum(Fill({300}, s), 0) / 300
  return i + 1, slow + Cast(seen, {DstT = float32})
end, {Const(0), x}, {parallel_iterations = 1})
entry.r = s
EOF
    [[ $(result print.lua 0 2>lines) == "step 1  s 44850" ]]
    diff lines <(seq 0 299 | sed 's/.*/at [&]/')
}

@test "what has effects in a branch that is not taken does not run, nested ones neither" {
    cat >effects.lua <<'EOF'
x = Placeholder{dtype = float32, name = "x", shape = {}}
w = variable{shape = {}, init = init.zeros, name = "w"}
local function put(value) return function() return Assign(w, value) end end
local set = cond(Less(x, 0.0), put(1.0), function()
  return cond(Less(x, 1.0), put(2.0), put(3.0))
end)
entry.r = group{set}
EOF
    tf-graph effects.lua -o e.tfg
    for pair in "-1 1" "0.5 2" "1 3"; do # a step reads before it writes
        tf-exec -g e.tfg --run r --fetch w --feed "x=${pair% *}" --steps 2 | tf-show >seen
        [[ $(cat seen) == "step 1  w 0"$'\n'"step 2  w ${pair#* }" ]]
    done
}

# The same sums of the same products, without a loop; with 0 iterations no gradient reaches W.
@test "gradients of a loop are those of the loop unrolled, whatever runs at once" {
    cat >unroll.lua <<'EOF'
x = Placeholder{dtype = float64, name = "x", shape = {}}
local W = Const({{0.5, -1, 0.25}, {1, 0.75, -0.5}, {-0.25, 0.5, 1}}, {dtype = float64}) * x
local v0 = Const({{1.0, 2, 3}, {-1, 0.5, -2}}, {dtype = float64})
local function body(v) return Tanh(MatMul(v, W)) + v end
local function loop(n, parallel)
  local _, v = while_loop(function(i) return Less(i, n) end,
                          function(i, v) return i + 1, body(v) end, {Const(0), v0},
                          {parallel_iterations = parallel})
  return gradients(v * v, {W, v0})
end
local function unrolled(n)
  local v = v0
  for _ = 1, n do v = body(v) end
  return gradients(v * v, {W, v0})
end
local function distance(a, b) return Sum(Abs(a - b), {0, 1}) end
local one, many, want = loop(4, 1), loop(4, 32), unrolled(4)
local none, once = loop(0, 10), loop(1, 10)
local want_once = unrolled(1)
exact = Pack({distance(one[1], many[1]), distance(one[2], many[2]),
              distance(none[1], 0 * W), distance(none[2], 2 * v0)})
near = distance(one[1], want[1]) + distance(one[2], want[2]) +
       distance(once[1], want_once[1]) + distance(once[2], want_once[2])
entry.r = Pack({Max(exact, 0), Floor(near * 1e10), Floor(Sum(Abs(want[1]), {0, 1}))})
EOF
    [[ $(result unroll.lua 0.5) == "step 1  Pack 0 0 283" ]]
}
