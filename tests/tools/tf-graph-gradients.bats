#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-graph --text: a node whose op differs from the one that its gradient was made for.
# shellcheck disable=SC2154  # stderr is of run
bats_require_minimum_version 1.5.0
load ../lib/tools

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    cat >ops.lua <<'LUA'
local known = {2, 3}
x = Placeholder{dtype = float32, shape = D.open and {-1, 3} or known}
z = Placeholder{dtype = float32, shape = known}
local function through(y, xs) gradients(tf_sum(y), xs) end
function tf_sum(y) return y.rank == 0 and y or Sum(y, y.rank == 1 and {0} or {0, 1}) end
for op in D.unary:gmatch "%w+" do through(_G[op](x, {name = "u" .. op}), x) end
for op in D.binary:gmatch "%w+" do
  through(_G[op](Tanh(x), z, {name = "b" .. op}), {x, z})
  through(_G[op](z, Placeholder{dtype = float32, shape = {3}}, {name = "c" .. op}), z)
end
for op in D.reductions:gmatch "%w+" do through(_G[op](x, {0}, {name = "r" .. op}), x) end
through(cond(Greater(tf_sum(x), 0), function() return Tanh(x) end, function() return -x end), x)
local _, s = while_loop(function(i) return Less(i, 3) end,
                        function(i, s) return i + 1, Tanh(s) * z end, {0, z})
through(s, z)
gradients(tf_sum(gradients(tf_sum(Tanh(x) * Sigmoid(x)), x)), x)
local w = variable{name = "w", shape = {5, 2}}
through(Gather(w, {1, 2}), w)
last = gradients(tf_sum(Square(Relu(x))), x)
total = tf_sum(Abs(x))
first = gradients(total, x)
total = tf_sum(Exp(Abs(x)))
LUA
    options=(-D "unary=Abs Neg Exp Log Log1p Sqrt Rsqrt Square Sin Cos Tanh Sigmoid Relu Relu6 \
Elu Softplus Reciprocal Softmax LogSoftmax" -D "binary=Add Sub Mul Div Pow Maximum Minimum \
SquaredDifference" -D "reductions=Sum Mean Prod Max Min")
}

quiet() { # COMMAND...
    run --separate-stderr -0 "$@"
    [ -z "$stderr" ] || { echo "$stderr"; false; }
}

@test "a graph as it was printed says nothing, simplified and replicated neither" {
    for open in "" "-D open=true"; do
        # shellcheck disable=SC2086  # options
        tf-graph "${options[@]}" $open ops.lua >g.tfg
        quiet bash -c 'tf-show --text g.tfg | tf-graph --text >/dev/null'
        quiet bash -c 'tf-opt g.tfg | tf-show --text | tf-graph --text >/dev/null'
    done
    for script in digits digits_cnn digits_rnn; do
        tf-graph "$root/examples/$script.lua" >g.tfg
        quiet bash -c 'tf-show --text g.tfg | tf-graph --text >/dev/null'
        for how in tf-opt "tf-opt --half fp16" "tf-opt --for CPU" "tf-replicate --mode sync"; do
            quiet bash -c "$how g.tfg | tf-show --text | tf-graph --text >/dev/null"
        done
    done
}

@test "each op in place of another is named, with what its gradient has or lacks" {
    tf-graph "${options[@]}" ops.lua | tf-show --text >g.txt
    for pair in Abs:Neg Exp:Log Log:Log1p Sqrt:Rsqrt Square:Sqrt Sin:Cos Cos:Sin Tanh:Sigmoid \
        Relu:Relu6 Relu:Tanh Relu:Floor Relu:Identity Elu:Softplus Neg:Abs Exp:Reciprocal \
        Softmax:LogSoftmax Add:Sub Sub:Add Mul:Div Div:Mul Pow:Mul Maximum:Minimum \
        SquaredDifference:Sub Sum:Mean Mean:Sum Sum:Prod Max:Sum; do
        from=${pair%:*} to=${pair#*:}
        for node in "u$from" "b$from" "r$from"; do
            grep -q "^$node = " g.txt || continue
            sed "/^$node = /s/ = $from(/ = $to(/" g.txt >h.txt
            run --separate-stderr -0 tf-graph --text h.txt
            [[ $stderr == "tf-graph: h.txt: '$node' is $to, but its gradient has "*": it was made \
for another op; change ops before gradients are added (tf-grad)" ]] ||
                { echo "$pair: $stderr"; false; }
        done
    done
}

@test "of a simplified graph, too" {
    tf-graph "$root/examples/digits.lua" | tf-opt | tf-show --text >g.txt
    sed 's/ = Relu(/ = Tanh(/' g.txt >h.txt
    run --separate-stderr -0 tf-graph --text h.txt
    [[ $stderr == "tf-graph: h.txt: 'h' is Tanh, but its gradient has ReluGrad: it was made"* ]]
}

@test "an op that is changed before gradients are added has its own" {
    cd "$root/examples" || return 1
    grep -v minimize digits.lua | tf-graph - | tf-show --text | sed 's/ = Relu(/ = Tanh(/' |
        tf-graph --text | tf-grad --minimize loss --optimizer adam,rate=0.003 |
        tf-show --text >"$BATS_TEST_TMPDIR/edited.txt"
    sed 's/activation = Relu/activation = Tanh/' digits.lua | tf-graph - |
        tf-show --text >"$BATS_TEST_TMPDIR/script.txt"
    cd "$BATS_TEST_TMPDIR" || return 1
    for f in edited script; do
        grep -E '^(gradients|update|h|train)' $f.txt | sed 's/ at .*//' >$f.nodes
    done
    diff edited.nodes script.nodes
    grep -q '^gradients/h_grad/TanhGrad = ' edited.nodes
}
