#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-graph: scripts to graphs, and the values of the prelude's nodes.
bats_require_minimum_version 1.5.0
load ../lib/tools

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
}

# The values that a script's entry "check" fetches in N steps, as tf-show prints them.
values() { # SCRIPT [STEPS]
    tf-graph -e "$1" | tf-exec --run check --steps "${2:-1}" | tf-show
}

@test "a script that makes nothing says so" {
    echo 'return function() end' > module.lua
    run --separate-stderr -0 tf-graph module.lua -o g.tfg
    # shellcheck disable=SC2154  # of run
    [ "$stderr" = "tf-graph: module.lua: makes no node: an empty graph" ]
}

@test "a script gives the same bytes in every run" {
    cat > m.lua <<'LUA'
local layers = {}
for _, name in ipairs{'conv', 'dense', 'pool', 'norm', 'drop', 'flat', 'out'} do
  layers[name] = {math.random(100)}
end
for name, layer in next, layers do
  Const(layer[1], {name = name, _text = ('%s %s'):format(layer, tostring(print))})
end
Const(1, {name = next(layers) .. '_first', _text = tostring(layers)})
LUA
    tf-graph m.lua > first
    for _ in 1 2 3 4 5 6 7 8; do
        tf-graph m.lua | cmp - first
    done
    tf-show --text first | finds '_text="table: [0-9]* function: [0-9]*"'
}

@test "a script becomes a graph, and the same script the same bytes" {
    cat >m.lua <<'END'
local units = D.units or 4
x = Placeholder{dtype = float32, shape = {-1, 3}}
h = nn.dense(x, units, {name = "hidden", activation = Relu})
entry.predict = h
END
    tf-graph m.lua >a.tfg
    tf-graph m.lua >b.tfg
    cmp a.tfg b.tfg
    tf-graph -D units=5 - <m.lua >c.tfg
    tf-exec -g c.tfg --run predict --feed 'x=[[1.0,2,3]]' >c.rec
    [ "$(tf-show --npy c.rec h | tail -c 20 | od -An -v -w4 -tf4 | wc -l)" = 5 ]
    grep -aq "(1, 5)" <(tf-show --npy c.rec h)
}

@test "the seed changes the initial values, the order of lines does not" {
    local one='a = variable{name = "a", shape = {3}, init = init.uniform()} '
    local two='b = variable{name = "b", shape = {3}, init = init.uniform()} '
    local check='entry.check = tensor "a/read"'
    [ "$(values "$one$two$check")" = "$(values "$two$one$check")" ]
    tf-graph --seed 1 -e "$one$check" | tf-exec --run check | tf-show >seeded
    [ "$(cat seeded)" != "$(values "$one$check")" ]
}

@test "an error is one line with script line, node and op; exit 65; the next stage names us" {
    printf '%s\n' 'x = Placeholder{dtype = float32, shape = {-1, 128}}' '' \
        'scope("output", function()' '  y = MatMul(x, Const{{1.0}})' 'end)' >wrong.lua
    run -65 --separate-stderr tf-graph wrong.lua
    # shellcheck disable=SC2154
    [ "$stderr" = "tf-graph: wrong.lua:4: node 'output/MatMul': MatMul: inner dimensions 128 and 1 \
differ: float32[?,128] x float32[1,1]" ]
    tf-graph wrong.lua 2>/dev/null | tf-show 2>message || status=$?
    [ "$(cat message)" = "tf-show: stdin: stopped by tf-graph" ]
}

@test "wrong usage is 64, a missing script 66, a folder 65" {
    run -64 tf-graph -e 'x = 1' file.lua
    run -64 tf-graph -D novalue -e 'x = 1'
    run -64 tf-graph -D unit=3 -e 'x = D.units'
    [[ $output == *"-D unit: the script does not look at D.unit"* ]]
    run -64 tf-graph --text -e 'x = 1'
    run -66 tf-graph absent.lua
    [[ $output == *"absent.lua: No such file or directory"* ]]
    run -65 tf-graph .
}

@test "an entry that is assigned again is the last one, and may be made of itself" {
    tf-graph -e 'a, b = Const(1), Const(2) entry.e = a entry.e = b
        entry.f = a entry.f = {entry.f, b}' | tf-show |
        finds -x 'entry   e b   f a,b'
    [ "$(tf-graph -o /dev/null -e 'entry.b = Const(1) entry.a = Const(2)
        for name in pairs(entry) do print(name) end' 2>&1)" = $'a\nb' ]
}

@test "require finds the module beside the script and nothing above it" {
    mkdir inner
    echo 'return function(x) return x * 2 end' >inner/twice.lua
    echo 'error "outside"' >twice.lua
    echo 'y = require "twice"(Const(21)) entry.check = y' >inner/m.lua
    [ "$(tf-graph inner/m.lua | tf-exec --run check | tf-show)" = "step 1  y 42" ]
    echo 'require "../twice"' >inner/m.lua
    run -65 tf-graph inner/m.lua
}

@test "print goes to stderr, the graph alone to stdout" {
    tf-graph -e 'print("hello", Const(1))' 2>text | head -c 5 >graph
    [ "$(cat text)" = "hello	tensor 'Const' int32[]" ]
    tf-graph -e 'y = Const(1); print("a\27[31m\155b\r", "ä\n")' 2>text >graph # to no terminal
    [ "$(cat text)" = 'a\x1b[31m\x9bb\x0d	ä' ]
}

@test "100,000 nodes are built in less than a second of computing" {
    echo 'local x = Placeholder{dtype = float32} for i = 1, 1e5 do x = Neg(x) end' >big.lua
    local TIMEFORMAT='%U %S'
    { time tf-graph big.lua -o big.tfg; } 2>spent
    awk '{ exit !($1 + $2 < 1) }' spent || [ -n "${SANITIZE:-}" ]
}

@test "cond takes one branch, with what it captures, and runs nothing of the other" {
    local script='p = PlaceholderWithDefault(true, {shape = {}}) local a = Const(3.0)
        local w = variable{name = "w", init = 0.0}
        local y, n = cond(p, function() return a + 1, AssignAdd(w, 1.0) end,
                          function() return a * 10, AssignAdd(w, 100.0) end, {name = "c"})
        entry.check = {y, group{n}}'
    [ "$(values "$script")" = "step 1  c/Merge 4" ]
    tf-graph -e "$script" | tf-exec --run check --feed p=false | tf-show >untaken
    [ "$(cat untaken)" = "step 1  c/Merge 30" ]
    tf-graph -e "$script entry.w = w" >g.tfg
    tf-exec -g g.tfg --run check --steps 2 --save s >fetched
    [ "$(tf-exec -g g.tfg --run w --restore s | tf-show)" = "step 1  w/read 2" ]
}

@test "while_loop: trip counts of 0, 1 and many, nested, with conditions inside" {
    [ "$(values 'entry.check = while_loop(function(i) return Less(i, 0) end,
        function(i) return i + 1 end, {5}, {name = "l"})')" = "step 1  l/Exit 5" ]
    [ "$(values 'entry.check = while_loop(function(i) return Less(i, 1000) end,
        function(i) return i + 1 end, {0}, {name = "l"})')" = "step 1  l/Exit 1000" ]
    # sum over i < 6 of (i even: i, odd: the number of j < i), = 0 + 1 + 2 + 3 + 4 + 5
    [ "$(values 's = select(2, while_loop(function(i, s) return Less(i, 6) end, function(i, s)
        local j = while_loop(function(j) return Less(j, i) end, function(j) return j + 1 end, {0})
        local t = cond(Equal(i % 2, 0), function() return i end, function() return j end)
        return i + 1, s + t end, {0, 0})) entry.check = s')" = "step 1  s 15" ]
}

@test "loops and branches that do not fit are refused" {
    local loop='local function same(i) return i end local function less(i) return Less(i, 3) end '
    run -65 tf-graph -e "$loop while_loop(same, same, {0})"
    [[ $output == *"the condition must be a scalar bool"* ]]
    run -65 tf-graph -e "$loop while_loop(less, function(i) return i, i end, {0})"
    [[ $output == *"the body returns 2 values, not 1"* ]]
    run -65 tf-graph -e "$loop while_loop(function(x) return true end,
        function(x) return Concat(0, {x, x}) end, {{1.0}})"
    [[ $output == *"changes its shape from [1] to [2]"* ]]
    run -65 tf-graph -e 'cond(true, function() return 1 end, function() return 1.5 end)'
    [[ $output == *"result 1 is int32 in one branch, float32 in the other"* ]]
    run -65 tf-graph -e 'local t
        cond(true, function() t = Const(1) return t end, function() return 2 end) y = t + 1'
    [[ $output == *"was made in a branch of a cond and cannot be used outside of it"* ]]
}

@test "gradients go through cond and while_loop" {
    # y = x^8 by three squarings: dy/dx = 8 x^7 = 8 * 128
    [ "$(values 'local x = Const(2.0) local _, y = while_loop(function(i, y) return Less(i, 3) end,
        function(i, y) return i + 1, y * y end, {0, x}) g = gradients(y, x) entry.check = g')" \
        = "step 1  g 1024" ]
    [ "$(values 'local x = Const(2.0) local y = cond(Greater(x, 1), function() return x * x end,
        function() return x end) g = gradients(y, x) entry.check = g')" = "step 1  g 4" ]
}

@test "an optimizer's steps are those of its formula" {
    # w = 1, loss = 3 w: the gradient is 3
    local start='local w = variable{name = "w", init = 1.0} loss = 3 * w '
    w_after() { # OPTIMIZER STEPS
        tf-graph -e "$start entry.train = minimize(loss, $1) entry.w = w" >g.tfg
        tf-exec -g g.tfg --run train --steps "$2" --save s >fetched
        tf-exec -g g.tfg --run w --restore s | tf-show
    }
    [ "$(w_after 'optim.sgd{rate = 0.125}' 2)" = "step 1  w/read 0.25" ]
    # a = 3, then 0.5 * 3 + 3: w = 1 - 0.25 * (3 + 4.5)
    [ "$(w_after 'optim.momentum{rate = 0.25, momentum = 0.5}' 2)" = "step 1  w/read -0.875" ]
    # a = 7 + 9: w = 1 - 0.5 * 3 / 4
    [ "$(w_after 'optim.adagrad{rate = 0.5, initial = 7}' 1)" = "step 1  w/read 0.625" ]
    # |m / sqrt(v)| is 1 in both steps except for epsilon
    [[ "$(w_after 'optim.adam{rate = 0.25}' 2)" =~ ^"step 1  w/read 0.5"(0000.*)?$|0.49999 ]]
    # a plain function; its state is in a slot
    [ "$(w_after 'function(w, g) local n = slot(w, "n", 0) return group{Assign(n, n + 1),
        AssignSub(w, g * n)} end' 3)" = "step 1  w/read -8" ]
}

@test "row-wise updates are the dense ones, rows that come twice included" {
    local table='local w = variable{name = "w", init = {{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}}}
        local rows = Gather(w, {0, 2, 0}) loss = Sum(rows * rows * rows, {0, 1}) entry.w = w '
    local optimizer
    for optimizer in 'optim.sgd{rate = 0.01}' 'optim.adagrad{rate = 0.1}'; do
        tf-graph -e "$table entry.train = minimize(loss, $optimizer)" >rows.tfg
        tf-graph -e "$table entry.train = minimize(loss, {update = $optimizer.update})" >dense.tfg
        for kind in rows dense; do
            tf-exec -g $kind.tfg --run train --steps 3 --save s >fetched
            tf-exec -g $kind.tfg --run w --restore s | tf-show --npy - w/read | tail -c 24 |
                od -An -v -w4 -tf4 >$kind.txt
        done
        paste rows.txt dense.txt |
            awk '($1 - $2) ^ 2 > 1e-12 { wrong++ } END { exit wrong || NR != 6 }'
        [ "$(head -1 rows.txt | xargs)" != 1 ]
    done
}

@test "schedules are the published formulas" {
    values 'local s, show = Const(25), {}
        local function add(name, kind, o)
            o.step = o.step or s
            show[#show + 1] = Identity(schedule[kind](o), {name = name})
        end
        add("a", "exponential", {rate = 1, steps = 10, decay = 0.5})
        add("b", "exponential", {rate = 1, steps = 10, decay = 0.5, staircase = true})
        add("c", "inverse_time", {rate = 1, steps = 10, decay = 2})
        add("d", "polynomial", {rate = 1, steps = 50, last = 0})
        add("e", "polynomial", {rate = 1, steps = 20, last = 0, cycle = true})
        add("f", "polynomial", {step = Const(0), rate = 1, steps = 20, cycle = true})
        add("g", "piecewise", {bounds = {24, 25}, values = {1, 2, 3}})
        entry.check = show' >out
    [ "$(cat out)" = "step 1  a 0.176777  b 0.25  c 0.166667  d 0.5  e 0.375  f 1  g 2" ]
}

@test "clipping keeps direction and bounds the norm" {
    [ "$(values 'local a, b = Const{3.0}, Const{4.0}
        local list, n = clip.by_global_norm({a, false, b}, 2.5)
        entry.check = {Identity(n, {name = "n"}), Identity(list[1], {name = "a"}),
            Identity(list[3], {name = "b"}),
            Identity(clip.by_norm(Const{0.0, 0.0}, 1), {name = "z"}),
            Identity(clip.by_value(Const{5.0}, -1, 1), {name = "v"})}')" \
        = "step 1  n 5  a 1.5  b 2  z 0 0  v 1" ]
}

@test "moving averages follow s -= (1 - d)(s - v)" {
    tf-graph -e 'local w = variable{name = "w", init = 1.0} local e = ema(0.75)
        entry.set = Assign(w, 5.0) entry.track = e.apply{w} entry.s = e.average(w)' >g.tfg
    tf-exec -g g.tfg --run set --save s >fetched
    tf-exec -g g.tfg --run track --restore s --save t >fetched
    [ "$(tf-exec -g g.tfg --run s --restore t | tf-show)" = "step 1  w/average/read 2" ]
}

@test "a match of a pattern that tries for hours ends, and is the cause that the next stage names" {
    local script='x = Const(1) local _ = ("a"):rep(5000):find((".-"):rep(9) .. "b")'
    run -65 timeout 60 tf-graph --time-limit 0.2s -o x.tfg -e "$script"
    [ "$output" = "tf-graph: -e: the script computes for more than 0.2 s: is this an endless loop? \
(--time-limit)" ]
    [ ! -e x.tfg ]
    # shellcheck disable=SC2016  # for the inner shell
    run -65 bash -c 'tf-graph --time-limit 0.2s -e "$1" 2>/dev/null | tf-show' - "$script"
    [ "$output" = "tf-show: stdin: stopped by tf-graph" ]
    run -64 tf-graph --time-limit 0 -e 'x = 1'
    [ -z "$(compgen -G '.*.tmp')" ]
}

@test "the shape of a slice follows from bounds that follow from shapes" {
    cat >slice.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {12, 3}}
open = Placeholder{dtype = float32, shape = {-1, 3}}
local function rows(of) return StridedSlice(Shape(of), {0}, {1}, {1}, {shrink_axis_mask = 1}) end
local function part(of) return Pack{FloorDiv(rows(of), 4)}, Pack{rows(of) - 2}, {1} end
y = StridedSlice(x, part(x))
z = StridedSlice(x, part(open))
LUA
    tf-graph slice.lua | tf-show --text >text
    grep -q '^y = StridedSlice.* : float32\[7,3\] ' text
    grep -q '^z = StridedSlice.* : float32\[?,3\] ' text
}

@test "a convolution's window may have holes" {
    local script='x = Fill(Const{value = {1, 9, 8, 1}, dtype = int32}, 1.0)
        y = nn.conv2d(x, 2, 3, {dilation = {2, 3}, padding = "VALID"})
        entry.check = Shape(y)'
    run -0 bash -c 'tf-graph -e "$1" | tf-exec --run check | tf-show --json' bash "$script"
    [[ $output == *"[1,5,2,2]"* ]]
}

@test "a locally connected layer has a filter and a bias for each position" {
    local script='local x = Fill({2, 40, 41, 8}, 1.0)
        local y = nn.locally_connected2d(x, 16, 3, {stride = 2, activation = Relu, name = "first"})
        local z = nn.locally_connected2d(Transpose(y, {0, 3, 1, 2}), 4, {2, 3},
                                         {padding = "VALID", layout = "NCHW", name = "second"})
        local w = variables()[1]
        entry.spread = Identity(Mean(Square(w), {0, 1, 2, 3, 4, 5}) * 108, {name = "spread"})
        entry.both = group{Shape(y, {name = "y"}), Shape(z, {name = "z"})}
        entry.train = minimize(nn.l2(1, {z}), optim.sgd{rate = 0.1})'
    run -0 tf-graph -o g -e "$script"
    tf-show --text g >text
    grep -q 'first/W = Variable.*shape=\[20,21,3,3,8,16\]' text
    grep -q 'first/b = Variable.*shape=\[20,21,16\]' text
    grep -q 'second/W = Variable.*shape=\[19,19,2,3,16,4\]' text
    grep -q 'second/b = Variable.*shape=\[4,19,19\]' text
    tf-graph -e "$script" | tf-exec --fetch y,z,spread -q | tf-show --json >got
    # A uniform one: as if one position were all, of 72 inputs and 144 outputs.
    jq -e '.y == [2,20,21,16] and .z == [2,4,19,19] and .spread > 0.98 and .spread < 1.02' got
    run -65 tf-graph -e 'x = Fill({1, 4, 4, 1}, 1.0)
        y = nn.locally_connected2d(x, 2, 5, {padding = "VALID"})'
    [[ $output == *"nn.locally_connected2d: a window of 5 does not fit into 4"* ]]
}

@test "help of a topic has a line for all that the prelude has of it" {
    local topic
    for topic in nn metric init optim schedule clip collective; do
        tf-graph --help "$topic" >help
        [ "$(awk 'length > 100' help)" = '' ]
        tf-graph -e "for k in pairs($topic) do print('$topic.' .. k) end y = Const(1)" \
            2>names >/dev/null
        [ -s names ]
        while read -r name; do
            finds -E "(^|[ ,(])$name([ ,({:]|\$)" help || { echo "$name" && false; }
        done <names
    done
    tf-graph --help | finds -x -e '--help TOPIC, of what there is: nn, metric, init, .*, collective'
    # a name that is no topic is a script
    [ "$(tf-graph --help nowhere.lua)" = "$(tf-graph --help)" ]
}
