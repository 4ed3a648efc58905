#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-opt in pipes.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    cat >m.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 4}}
h = Relu(x / 16)
k = Identity(h * 1)
c = Exp(Const(1.0)) + 2
z = Add(h, x) + Add(x, h)
y = Sum(z * k, {1}) * c
dead = Exp(x)
entry.e = y
LUA
}

@test "what a plan for a device does can be seen, chosen, and left out" {
    cat >chain.lua <<'END'
x = Placeholder{dtype = float32, name = "x", shape = {2}}
wanted = Neg(x)
y = Tanh(Exp(wanted) * 2 + 1)
entry.e = y
END
    tf-graph chain.lua >c.tfg
    run --separate-stderr bash -c 'tf-opt --for CPU --keep wanted --report c.tfg >o.tfg'
    [ "$status" -eq 0 ]
    [[ $stderr == *"tf-opt: chains: 3 became part of the element-wise op that takes them"* ]]
    run bash -c 'tf-show --text o.tfg | grep FusedElementwise'
    [[ $output == "y = FusedElementwise(wanted, Mul/y, Add/y) "* ]]
    [[ $output == *'ops=["Exp","Mul","Add","Tanh"]'* ]]
    for graph in c o; do # tanh(2 exp(-x) + 1)
        run bash -c "tf-exec -g $graph.tfg --run e --feed x=[0,1] | tf-show --json"
        [ "$output" = '{"step":1,"y":[0.9950548,0.9397328]}' ]
    done
    run --separate-stderr bash -c 'tf-opt --for CPU --passes chains --report c.tfg >o.tfg'
    [[ $stderr == *"tf-opt: 8 of 8 nodes stay, after 0 rounds"* ]]
    [ "$(tf-exec -g c.tfg --run e --feed x=[0,1] --dump-plan | tf-show | grep -c fused)" = 1 ]
    tf-exec -g c.tfg --run e --feed x=[0,1] --dump-plan --without chains >p
    [ "$(tf-show p | grep -c fused)" = 0 ]
    run --separate-stderr tf-exec -g c.tfg --run e --feed x=[0,1] --without chain
    [ "$status" -eq 64 ]
    [ "$stderr" = "tf-exec: --without: there is no device pass 'chain': pools, updates, \
sums, products, chains, views or all" ]
    run --separate-stderr tf-opt --for TPU c.tfg
    [ "$status" -eq 64 ]
    [ "$stderr" = "tf-opt: --for: no kernels are known of a device 'TPU'" ]
    run tf-opt --passes chains c.tfg # of a device
    [ "$status" -eq 64 ]
}

@test "--for shows which sums of products are one, and --exact has them as the script does" {
    cat >sum.lua <<'END'
a = Placeholder{dtype = float32, name = "a", shape = {1, 2}}
b = Placeholder{dtype = float32, name = "b", shape = {1, 3}}
y = AddN{MatMul(a, b, {transpose_a = true}), MatMul(a * a, b, {transpose_a = true})}
entry.e = y
END
    tf-graph sum.lua >s.tfg
    run --separate-stderr bash -c 'tf-opt --for CPU --report s.tfg >o.tfg'
    [ "$status" -eq 0 ]
    [[ $stderr == *"tf-opt: sums: 2 became part of the sum or update that takes them"* ]]
    run bash -c 'tf-show --text o.tfg | grep FusedMatMulSum'
    [[ $output == "y = FusedMatMulSum(a, "*", b, b) "* ]]
    local step=(tf-exec -g s.tfg --run e --feed 'a=[[1,-2]]' --feed 'b=[[1,2,3]]')
    for option in --threads=1 --exact --without=sums; do
        run bash -c '"$@" | tf-show --json' - "${step[@]}" --fetch y "$option"
        [[ $output == *'[[2,4,6],[2,4,6]]'* ]]
    done
    [ "$("${step[@]}" --dump-plan | tf-show | grep -c matmul_sum)" = 1 ]
    for option in --exact --check --without=sums; do
        "${step[@]}" --dump-plan "$option" >p
        [ "$(tf-show p | grep -c matmul_sum)" = 0 ]
    done
}

@test "--for shows which products take the bias and the activation behind them" {
    cat >dense.lua <<'END'
x = Placeholder{dtype = float32, name = "x", shape = {2, 3}}
entry.e = nn.dense(x, 2, {name = "fc", activation = Relu, bias_init = init.zeros,
                          init = init.constant(1)})

END
    tf-graph dense.lua >d.tfg
    run --separate-stderr bash -c 'tf-opt --for CPU --report d.tfg >o.tfg'
    [ "$status" -eq 0 ]
    [[ $stderr == *"tf-opt: products: 2 became part of the product before them"* ]]
    run bash -c 'tf-show --text o.tfg | grep FusedMatMul'
    [[ $output == "fc/Relu = FusedMatMul(x, fc/W/read, fc/b/read) "* ]]
    [[ $output == *'epilogue=["BiasAdd","Relu"]'* ]]
    tf-exec -g o.tfg --run e --feed 'x=[[1,2,3],[-1,-2,-3]]' >r
    run tf-show --json r
    [[ $output == *'[[6,6],[0,0]]'* ]]
    tf-exec -g d.tfg --run e --feed 'x=[[1,2,3],[1,2,3]]' --dump-plan >p
    [ "$(tf-show p | grep -c fused_matmul)" = 1 ]
    tf-exec -g d.tfg --run e --feed 'x=[[1,2,3],[1,2,3]]' --dump-plan \
        --without products >p
    [ "$(tf-show p | grep -c fused)" = 0 ]
}

@test "--for shows which updates are made together, on devices that want it" {
    cat >train.lua <<'END'
x = Placeholder{dtype = float32, name = "x", shape = {2, 3}}
loss = Mean(nn.dense(nn.dense(x, 4, {name = "a"}), 1, {name = "b"}), {0, 1})
entry.train = minimize(loss, optim.momentum{rate = 0.5})
END
    tf-graph train.lua >t.tfg
    run --separate-stderr bash -c 'tf-opt --for CUDA --report t.tfg >o.tfg'
    [ "$status" -eq 0 ]
    [[ $stderr == *"tf-opt: updates: 3 became part of an update"* ]]
    run bash -c 'tf-show --text o.tfg | grep FusedApply'
    [[ $output == *" = FusedApply(a/W, a/b, b/W, b/b, "* ]]
    [[ $output == *'rule="ApplyMomentum"'* ]]
    run --separate-stderr bash -c 'tf-opt --for CUDA --passes chains t.tfg | tf-show --text'
    [[ $output != *FusedApply* ]]
    run bash -c 'tf-opt --for CPU t.tfg | tf-show --text'
    [[ $output != *FusedApply* ]]
    for graph in t o; do # to the bit
        tf-exec -g $graph.tfg --run train -n 3 --feed 'x=[[1,2,3],[-1,0.5,-3]]' --save $graph.ckpt
        tf-show --json $graph.ckpt >$graph.json
    done
    grep -q '"a/W/momentum"' t.json
    cmp t.json o.json
}

@test "each pass says what it changed, and with -v which nodes" {
    tf-graph m.lua >m.tfg
    run --separate-stderr bash -c 'tf-opt --report m.tfg >o.tfg'
    [ "$status" -eq 0 ]
    [[ $stderr == *"tf-opt: arith: 3 simplified"* ]]
    [[ $stderr == *"tf-opt: cse: 1 merged"* ]]
    [[ $stderr != *"'dead'"* ]]
    run --separate-stderr bash -c 'tf-opt --report -v m.tfg >o.tfg'
    [[ $stderr == *"tf-opt: 'dead': no entry needs it"* ]]
}

@test "constants are computed" {
    [ -z "${FILTERS-}" ] || skip "no kernels"
    tf-graph m.lua >m.tfg
    run --separate-stderr bash -c 'tf-opt --report m.tfg >o.tfg'
    [[ $stderr == *"tf-opt: fold: 1 folded"* ]]
}

@test "without --report it says nothing" {
    run bash -c 'tf-graph m.lua | tf-opt >o.tfg'
    [ "$status" -eq 0 ] && [ -z "$output" ]
}

@test "once is enough" {
    tf-graph m.lua | tf-opt >o.tfg
    run --separate-stderr bash -c 'tf-opt --report o.tfg >p.tfg'
    [[ $stderr == *"prune: 0 removed"*"arith: 0 simplified"*"fold: 0 folded"*"cse: 0 merged"* ]]
}

@test "a chosen pass runs alone" {
    tf-graph m.lua >m.tfg
    run --separate-stderr bash -c 'tf-opt --passes prune,cse --report m.tfg >o.tfg'
    [[ $stderr != *simplified* ]] && [[ $stderr == *"prune: 1 removed"*"cse: "* ]]
}

@test "a pass that does not exist is wrong usage" {
    run bash -c 'tf-graph m.lua | tf-opt --passes prun >o.tfg'
    [ "$status" -eq 64 ]
    [[ $output == *"there is no pass 'prun': prune, arith, fold or cse"* ]]
}

@test "a name to keep must exist" {
    run bash -c 'tf-graph m.lua >m.tfg; tf-opt --keep ded m.tfg >o.tfg'
    [ "$status" -eq 65 ]
    [[ $output == "tf-opt: m.tfg: cannot keep 'ded': there is no node 'ded' "* ]]
    [[ $output == *"(did you mean 'dead'?)" ]]
}

@test "what is kept can be fetched, and so can a name that was merged" {
    tf-graph m.lua | tf-opt --keep dead >o.tfg
    tf-op Const value='[[0.0,1,2,3]]' dtype=float32 -o x.npy
    run tf-exec -g o.tfg --fetch dead,k --feed x=x.npy -o o.rec
    [ "$status" -eq 0 ]
}

@test "the same results with and without" {
    tf-graph m.lua >m.tfg
    tf-op RandomStandardNormal '[3,4]' dtype=float32 seed=5 -o x.npy
    tf-exec -g m.tfg --run e --feed x=x.npy | tf-show >plain
    tf-opt m.tfg | tf-exec -g - --run e --feed x=x.npy | tf-show >optimized
    grep -q '^step 1' plain
    diff plain optimized
}

@test "a cut graph is truncated" {
    run bash -c 'tf-graph m.lua | head -c 900 | tf-opt >o.tfg'
    [ "$status" -eq 65 ]
    [[ $output == *"tf-opt: stdin: truncated after 900 bytes: no trailer, "* ]]
}

@test "what stopped the stage before is said once" {
    echo "error(7)" >bad.lua
    run bash -c 'tf-graph bad.lua | tf-opt >o.tfg; echo "exit ${PIPESTATUS[*]}"'
    [[ $output == *"tf-opt: stdin: stopped by tf-graph"* ]]
    [[ $output == *"exit 65 65"* ]]
}

# A folded constant still waits for the feed.
@test "a control edge from something fed is satisfied by the feed" {
    tf-graph -e 'x = Placeholder{dtype = float32, shape = {}}
        y = control({Identity(x)}, function() return Identity(Const(3.0)) end)' >m.tfg
    tf-opt --keep y m.tfg >o.tfg
    for graph in m o; do
        [ "$(tf-exec -g $graph.tfg --fetch y --feed x=2.0 | tf-show)" = "step 1  y 3" ]
    done
}

@test "records behind the graph are not swallowed" {
    tf-graph m.lua >m.tfg
    run bash -c 'cat m.tfg m.tfg | tf-opt >o.tfg'
    [ "$status" -eq 65 ]
    [ "$output" = "tf-opt: stdin: one graph is expected, but a 'graph' record follows" ]
    run bash -c 'head -c -1 m.tfg | tf-opt >o.tfg'
    [ "$status" -eq 65 ]
    [[ $output == "tf-opt: stdin: truncated after "* ]]
}

@test "training gives the same losses, with the same initial values" {
    cd "$BATS_TEST_DIRNAME/../../examples"
    tf-graph digits.lua >"$BATS_TEST_TMPDIR/plain.tfg"
    tf-opt "$BATS_TEST_TMPDIR/plain.tfg" -o "$BATS_TEST_TMPDIR/optimized.tfg"
    for graph in plain optimized; do
        ./feed --rows 1-640 --shuffle --batch 64 |
            tf-exec -g "$BATS_TEST_TMPDIR/$graph.tfg" --run train --fetch loss,accuracy |
            tf-show >"$BATS_TEST_TMPDIR/$graph.txt"
    done
    grep -q '^step 10  loss ' "$BATS_TEST_TMPDIR/plain.txt"
    diff "$BATS_TEST_TMPDIR/plain.txt" "$BATS_TEST_TMPDIR/optimized.txt"
}

@test "who asks for what tf-opt removed is told so, and how to keep it" {
    tf-graph -o g.tfg -e 'x = Placeholder{dtype = float32, shape = {-1}}
        mean = Mean(x, 0)
        bump = NoOp{name = "bump"}
        y = Neg(x)
        entry.predict = y'
    says() { # LINE COMMAND...
        local line=$1
        shift
        run --separate-stderr -65 "$@" -o out.rec
        [ "$stderr" = "$line" ] || { echo "$stderr" >&2 && false; }
    }
    local said="tf-opt has removed 'mean'; tf-opt --keep mean keeps it"
    tf-opt g.tfg > o.tfg
    says "tf-exec: o.tfg: $said" tf-exec -g o.tfg --fetch mean --feed 'x=[1.0]'
    says "tf-exec: o.tfg: $said" tf-exec -g o.tfg --fetch mean:0 --feed 'x=[1.0]'
    says "tf-exec: o.tfg: tf-opt has removed 'bump'; tf-opt --keep bump keeps it" \
        tf-exec -g o.tfg --run bump
    # through all later tools, and as text
    tf-opt o.tfg | tf-place | tf-show --text | tf-graph --text | tf-opt > later.tfg
    says "tf-exec: later.tfg: $said" tf-exec -g later.tfg --fetch mean --feed 'x=[1.0]'
    tf-show --text later.tfg | finds -x 'removed mean'
    tf-part later.tfg > parts.tfg
    says "tf-exec: parts.tfg: $said" tf-exec -g parts.tfg --fetch mean --feed 'x=[1.0]'
    says "tf-grad: o.tfg: $said" tf-grad --of mean --wrt x o.tfg
    # not if it is back, or was kept, or never existed
    tf-opt --keep mean g.tfg | tf-exec --fetch mean --feed 'x=[1.0,3]' | tf-show |
        grep -qx 'step 1  mean 2'
    { tf-show --text o.tfg; echo 'mean = Neg(y) {}'; } |
        tf-graph --text | tf-opt --keep mean > back.tfg
    tf-exec -g back.tfg --fetch mean --feed 'x=[5.0]' | tf-show | finds -x 'step 1  mean 5'
    ! tf-show --text back.tfg | finds '^removed mean' || false
    run --separate-stderr -65 tf-exec -g o.tfg --fetch maen --feed 'x=[1.0]'
    [[ $stderr != *tf-opt* ]]
}

half_model() {
    cat >half.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 8}}
y = Placeholder{dtype = int32, shape = {-1}}
h = nn.dense(x, 16, {name = "hidden", activation = Relu})
logits = nn.dense(h, 3, {name = "output"})
loss = nn.cross_entropy(logits, y)
entry.train = {minimize(loss, optim.momentum{rate = 0.1}), loss}
entry.predict = logits
LUA
    tf-graph half.lua >half.tfg
}

# types NAME...: the types of these nodes in tf-show's output
types() {
    local name
    for name in "$@"; do
        tf-show --text o.tfg | sed -n "s|^$name = .*} : \\([a-z0-9]*\\)\\[.*|\\1|p"
    done
}

@test "products are computed in 16 bits, variables and losses in 32" {
    half_model
    for type in bf16:bfloat16 fp16:float16; do
        tf-opt --half "${type%:*}" half.tfg >o.tfg
        [ "$(types hidden/MatMul output/MatMul h/half | sort -u)" = "${type#*:}" ]
        [ "$(types x hidden/W hidden/W/momentum hidden/W/gradient | sort -u)" = float32 ]
        [ "$(types logits loss | sort -u)" = float32 ]
    done
    tf-show --text o.tfg >o
    grep -q '^h/half = Relu(' o
    grep -q '^alias h = h/float32$' o
}

@test "what is rewritten for 16 bits says how much" {
    half_model
    run --separate-stderr bash -c 'tf-opt --half bf16 --report half.tfg >o.tfg'
    [[ $stderr == "tf-opt: half: "*" computed in 16 bits, 0 gradients of a scaled loss"* ]]
    run --separate-stderr bash -c 'tf-opt --half fp16 --report -v half.tfg >o.tfg'
    [[ $stderr == *"'hidden/MatMul': is computed in 16 bits"* ]]
    [[ $stderr == *", 4 gradients of a scaled loss"* ]]
}

@test "the loss is scaled as asked for" {
    half_model
    tf-opt --half bf16 half.tfg | tf-show --text >o
    [ "$(grep -c '^loss_scale' o)" = 0 ]
    tf-opt --half fp16 --loss-scale none half.tfg | tf-show --text >o
    [ "$(grep -c '^loss_scale' o)" = 0 ]
    tf-opt --half fp16 --loss-scale 256 half.tfg | tf-show --text >o
    [ "$(grep -c '^loss_scale = ' o)" = 0 ]
    grep -q '^loss_scale/.*value=256' o
    tf-opt --half fp16 half.tfg | tf-show --text >o
    grep -q '^loss_scale = Variable()' o
}

@test "wrong options of 16 bits" {
    half_model
    run --separate-stderr tf-opt --half fp8 half.tfg
    [ "$status" -eq 64 ]
    [ "$stderr" = "tf-opt: --half is bf16 or fp16, not 'fp8'" ]
    run --separate-stderr tf-opt --half fp16 --loss-scale 0 half.tfg
    [ "$status" -eq 64 ]
    [[ $stderr == *"the loss scale must be dynamic, none or a number from 1 to 16777216, not '0'" ]]
    run --separate-stderr tf-opt --loss-scale 8 half.tfg
    [ "$status" -eq 64 ]
    [ "$stderr" = "tf-opt: --loss-scale is for --half, which is not given" ]
    tf-show --text half.tfg | sed 's/_loss="[^"]*", //' >o.txt
    tf-graph --text o.txt >o.tfg
    run --separate-stderr bash -c 'tf-opt --half fp16 o.tfg >p.tfg'
    [ "$status" -eq 65 ]
    [[ $stderr == *"the gradient of the loss is not marked, or was folded"* ]]
}

@test "in 16 bits twice is in 16 bits once" {
    half_model
    tf-opt --half bf16 half.tfg >o.tfg
    tf-opt --half bf16 o.tfg | tf-show --text | grep -v '^made' >twice
    tf-show --text o.tfg | grep -v '^made' >once
    diff once twice
}

@test "a graph without training needs no scale" {
    half_model
    tf-graph half.lua | tf-opt --half fp16 --keep h >o.tfg
    cat >p.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 2}}
entry.p = MatMul(x, Const({{1.0, 2.0}, {3.0, 4.0}}))
LUA
    tf-graph p.lua | tf-opt --half fp16 >p.tfg
    run bash -c 'tf-exec -g p.tfg --run p --feed "x=[[1,0.5]]" | tf-show --json'
    [[ $output == *'[[2.5,4]]'* ]]
}

@test "only the entry ready asks for the variables of the scale" {
    half_model
    tf-show --text half.tfg >half.txt
    local ready
    ready=$(sed -n 's/^entry ready = //p' half.txt)
    sed "s|^entry ready .*|&\nentry there = $ready\nalias is_there = $ready|" half.txt >o.txt
    tf-graph --text o.txt | tf-opt --half fp16 | tf-show --text >o
    grep -x "entry there = $ready" o
    grep -x "alias is_there = $ready" o
    grep -x 'entry ready = loss_scale/.*' o
    sed "s|^entry ready .*|entry ready = ^$ready|" half.txt >o.txt
    tf-graph --text o.txt | tf-opt --half fp16 | tf-show --text >o
    grep -x "entry ready = ^$ready" o
}
