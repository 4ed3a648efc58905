#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-show: its output for records.
# shellcheck disable=SC2154  # variables of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    printf '1,-2,7\n3,4.5,8\n0.1,nan,9\n' > t.csv
    tf-data csv t.csv x=1-2 y=3:int32 -b 2 > t.rec
}

@test "a feed record is a line: types, ranges, single values" {
    run -0 tf-show t.rec
    [ "${#lines[@]}" -eq 2 ]
    [ "${lines[0]}" = \
        "feed 1  x float32[2,2] min -2 max 4.5 mean 1.62  y int32[2] min 7 max 8 mean 7.5" ]
    [ "${lines[1]}" = "feed 2  x float32[1,2] min 0.1 max 0.1 mean 0.1 nan 1  y int32[1] 9" ]
}

@test "names select tensors; -v shows all elements" {
    [ "$(tf-show t.rec y | head -1)" = "feed 1  y int32[2] min 7 max 8 mean 7.5" ]
    [ "$(tf-show -v t.rec x | head -1)" = "feed 1  x float32[2,2] 1 -2 3 4.5" ]
}

@test "JSON lines have exact numbers, and words for what JSON has no numbers for" {
    run -0 tf-show --json t.rec
    [ "${lines[0]}" = '{"feed":1,"x":[[1,-2],[3,4.5]],"y":[7,8]}' ]
    [ "${lines[1]}" = '{"feed":2,"x":[[0.1,"NaN"]],"y":[9]}' ]
    printf '0.1\n' | tf-data csv - x=1:float64 | tf-show --json | finds '"x":\[0.1\]'
    printf '9007199254740993\n' | tf-data csv - x=1:int64 | tf-show --json |
        grep -q '\[9007199254740993\]'
    printf '"a""b\\\n\x01"\n' | tf-data csv - x=1:string --header no | tf-show --json |
        jq -e '.x[0] == "a\"b\\\n\u0001"'
}

@test "--npy writes the rows of all records" {
    tf-show --npy t.rec x > x.npy
    [ "$(head -c 6 x.npy | tail -c 5)" = NUMPY ]
    tf-data npy x=x.npy -b 3 | tf-show --json | finds -F '"x":[[1,-2],[3,4.5],[0.1'
    tf-show --npy t.rec y > y.npy
    [ "$(tf-show --json y.npy)" = '{"value":[7,8,9]}' ]
    run -65 tf-show --npy t.rec z
    [ "$output" = "tf-show: t.rec: no tensor 'z' (there is: x, y)" ]
    run -64 tf-show --npy t.rec
    [ "$output" = "tf-show: t.rec: --npy writes one tensor: name one of x, y" ]
    printf '1,2\n' | tf-data csv - x=1-2 > wide.rec
    printf '1\n' | tf-data csv - x=1:shape=1 | cat wide.rec - > mixed.rec
    run --separate-stderr -65 tf-show --npy mixed.rec x
    [ "$stderr" = "tf-show: mixed.rec: record 2: 'x' is float32[1,1], but in the first one \
float32[1,2]: these are no rows of one array" ]
    run -64 tf-show --npy t.rec x y
    [ "$output" = "tf-show: --npy writes one tensor" ]
}

@test "--npy makes a vector of the numbers of steps, and takes one of several tensors by name" {
    make_graph
    seq 1 3 | tf-data csv - x=1 | tf-exec -g g.tfg --run up --fetch total,y > f.rec
    tf-show --npy f.rec total > total.npy
    [ "$(tf-show total.npy)" = "float32[3]  8 18 32" ]
    tf-exec -g g.tfg --run up --steps 1 --save g.ckpt
    cat g.ckpt g.ckpt > twice.rec
    tf-show --npy g.ckpt > w.npy
    [ "$(tf-show w.npy)" = "float32[2]  4 4" ]
    run --separate-stderr -65 tf-show --npy twice.rec w
    [ "$stderr" = "tf-show: twice.rec: there is more than one tensor 'w'" ]
}

@test ".npy and .npz are shown as tensors, from a file or a pipe" {
    tf-show --npy t.rec y > y.npy
    [ "$(tf-show y.npy)" = "int32[3]  7 8 9" ]
    # shellcheck disable=SC2002  # a pipe is meant
    [ "$(cat y.npy | tf-show)" = "int32[3]  7 8 9" ]
    [ "$(tf-show - < y.npy)" = "int32[3]  7 8 9" ]
    gzip -k y.npy
    [ "$(tf-show y.npy.gz)" = "int32[3]  7 8 9" ]
    mkdir z
    cp y.npy z/a.npy
    cp y.npy z/b.npy
    (cd z && python3 -m zipfile -c ../z.npz a.npy b.npy)
    [ "$(tf-show z.npz)" = $'a  int32[3]  7 8 9\nb  int32[3]  7 8 9' ]
    [ "$(tf-show --json z.npz b)" = '{"b":[7,8,9]}' ]
    tf-show --npy z.npz b | cmp - y.npy
    run -64 tf-show --npy z.npz
    head -c 100 y.npy > cut.npy
    run -65 tf-show cut.npy
    [[ $output == "tf-show: cut.npy: "* ]]
    run -65 tf-show y.npy z
    [ "$output" = "tf-show: y.npy: no tensor 'z'" ]
}

@test "a name that no record has is an error, and steps without it are not shown" {
    run --separate-stderr -65 tf-show t.rec z
    [ -z "$output" ]
    [ "$stderr" = "tf-show: t.rec: no tensor 'z'" ]
    run --separate-stderr -65 tf-show --json t.rec y z
    [ "${#lines[@]}" -eq 2 ]
    run --separate-stderr -65 tf-show --follow t.rec z
    [ "$stderr" = "tf-show: t.rec: no tensor 'z'" ]
    make_graph
    run --separate-stderr -65 tf-show g.tfg w
    [ "$stderr" = "tf-show: g.tfg: no tensor 'w'" ]
}

@test "options that contradict each other, or the input, say so" {
    run -64 tf-show --json --npy t.rec x
    [ "$output" = "tf-show: --json and --npy do not go together" ]
    run -64 tf-show --depth 1 t.rec
    [ "$output" = "tf-show: --depth is for --dot, which is not given" ]
    run --separate-stderr -65 tf-show --costs t.rec
    [ "$stderr" = "tf-show: t.rec: no trace, as tf-exec --trace writes, for --costs" ]
    run --separate-stderr -65 tf-show --text t.rec
    [ "$stderr" = "tf-show: t.rec: no graph, which --text shows" ]
    run -65 --separate-stderr tf-show --json --elide t.rec
    [ "$stderr" = "tf-show: t.rec: no graph, which --elide is for" ]
}

@test "--follow without a terminal ends with the last step" {
    run -0 tf-show --follow t.rec
    [ "${#lines[@]}" -eq 1 ]
    [[ ${lines[0]} == "step 2/2"* ]]
}

@test "--follow waits for more of a file that is still being written" {
    tf-data csv t.csv x=1 -b 1 > whole.rec
    head -c 300 whole.rec > live.rec
    tf-show --follow live.rec > shown 2> err &
    local pid=$!
    soon 10 grep -q '^step 1/3' shown
    tail -c +301 whole.rec | head -c 100 >> live.rec
    sleep 0.3
    kill -0 $pid
    tail -c +401 whole.rec >> live.rec
    wait $pid
    [[ $(tail -n 1 shown) == "step 3/3"* ]]
    [ ! -s err ]
    # from the first byte on, until it is asked to end
    : > empty.rec
    tf-show --follow empty.rec > shown 2> err &
    pid=$!
    sleep 0.3
    head -c 300 whole.rec >> empty.rec
    soon 10 grep -q '^step 1/3' shown
    kill -INT $pid
    wait $pid
    [ ! -s err ]
    # without --follow nothing has changed
    run -65 tf-show empty.rec
}

@test "--follow on a terminal draws one line over itself" {
    command -v script > /dev/null || skip "no script(1)"
    script -qec true /dev/null > /dev/null 2>&1 < /dev/null || skip "no pseudo-terminal here"
    script -qec 'tf-show --follow t.rec' /dev/null < /dev/null > typescript
    grep -q 'step 2/2' typescript
    grep -q $'\r' typescript
}

@test "each record is shown as it comes" {
    mkfifo in
    tf-show < in > shown &
    exec 7> in
    tf-data csv t.csv x=1 -b 1 > whole.rec
    head -c 300 whole.rec >&7
    for _ in $(seq 100); do
        [ -s shown ] && break
        sleep 0.02
    done
    grep -q '^feed 1  x float32\[1\] 1$' shown
    tail -c +301 whole.rec >&7
    exec 7>&-
    wait
    [ "$(wc -l < shown)" -eq 3 ]
}

@test "a stage that failed is named; a cut stream is no stream" {
    printf '1\nx\n' > bad.csv
    tf-data csv bad.csv x=1 2> /dev/null | cat > bad.rec || true
    run -65 tf-show bad.rec
    [ "$output" = "tf-show: bad.rec: stopped by tf-data" ]
    head -c 300 t.rec > cut.rec
    run -65 tf-show cut.rec
    [[ ${lines[-1]} == "tf-show: cut.rec: truncated after 300 bytes: "* ]]
}

# A graph with a variable: y = x * w + 1, entry up: w += 1.
make_graph() {
    tf-graph -o g.tfg -e 'x = Placeholder{dtype = float32, shape = {-1}}
        local w = variable{name = "w", shape = {2}, init = 3}
        y = x * w + 1
        total = Sum(y, {0})
        entry.up = AssignAdd(w, {1.0, 1.0})'
}

@test "fetches: values where there are few" {
    make_graph
    tf-exec -g g.tfg --fetch y --feed 'x=[1.0,0.5]' | tf-show > shown
    [ "$(cat shown)" = "step 1  y 4 2.5" ]
    [ "$(tf-exec -g g.tfg --fetch y --feed 'x=[1.0,0.5]' | tf-show --json)" = \
        '{"step":1,"y":[4,2.5]}' ]
}

@test "saved variables are a line each" {
    make_graph
    tf-exec -g g.tfg --run up --steps 4 --save g.ckpt
    [ "$(tf-show g.ckpt)" = "w  float32[2]  7 7" ]
    [ "$(tf-show --json g.ckpt)" = '{"w":[7,7]}' ]
}

@test "plans: what runs in which order, and where it lies" {
    make_graph
    tf-exec -g g.tfg --fetch y --feed 'x=[1.0,0.5]' --dump-plan | tf-show > shown
    sed -n 1p shown |
        grep -Eq '^plan   y  [0-9]+ of [0-9]+ nodes  x float32\[2\]  peak [0-9.]+ KiB$'
    sed -n 2p shown | finds -E '^ORDER  NODE +KERNEL +BUFFER +BYTES  LIVE$'
    grep -Eq '^[0-9]+ +y +[a-z_0-9]+ +arena\+[0-9]+ +8 +[0-9]+-[0-9]+$' shown
    tf-exec -g g.tfg --fetch y --feed 'x=[1.0,0.5]' --dump-plan | tf-show --json |
        jq -e '.feeds == ["x float32[2]"]'
}

@test "plans: what a node of several stands for" {
    cat >d.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {2, 3}}
y = Relu(BiasAdd(MatMul(x, Const({{1.0, 2}, {3, 4}, {5, 6}})), Const({1.0, -1})))
z = Tanh(x * 2 + 1)
LUA
    tf-graph d.lua >d.tfg
    tf-exec -g d.tfg --fetch y --fetch z --feed 'x=[[1,2,3],[4,5,6]]' --dump-plan | tf-show >shown
    grep -q 'MatMul+BiasAdd+Relu' shown
    grep -q '(Mul+Add+Tanh)' shown
}

@test "plans: regions, between points of which only running tells when they come" {
    cat >c.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {4}}
p = Placeholder{dtype = bool, shape = {}}
y = cond(p, function() return Exp(Neg(x)) end, function() return Reshape(x, {2, 2}) end)
LUA
    tf-graph c.lua | tf-opt >c.tfg
    tf-exec -g c.tfg --fetch y --feed 'x=[1.0,2.0,3.0,4.0]' --feed p=true --dump-plan |
        tf-show >shown
    sed -n 1p shown | finds -E '  [0-9]+ regions  peak [0-9.]+ KiB$'
    sed -n 2p shown | finds -E '^ORDER  REGION  NODE +KERNEL +BUFFER +BYTES  LIVE$'
    grep -Eq '^[0-9]+ +- +[^ ]*Switch' shown
    grep -Eq '^[0-9]+ +[0-9]+ +[^ ]*Exp' shown
}

@test "traces: time of steps and of ops" {
    make_graph
    tf-exec -g g.tfg --run up --steps 5 --trace t.trace
    tf-show t.trace > shown
    sed -n 1p shown |
        grep -Eq '^trace   5 steps  median [0-9.]+ (us|ms|s)  p90 .*  in kernels [0-9]+%  1 thread$'
    sed -n 2p shown | finds -E '^OP +TIME +SHARE  CALLS  EACH +SLOWEST$'
    grep -Eq '^AssignAdd +.* 5 ' shown
    [ "$(tf-show --json t.trace | jq -s 'map(select(.op == "AssignAdd")) | length')" -eq 5 ]
}

@test "traces: what does nothing is told of, in a dynamic plan too" {
    cat >c.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {4}}
p = Placeholder{dtype = bool, shape = {}}
y = cond(p, function() return Exp(x) end, function() return Reshape(x, {2, 2}) end)
all = group(y)
LUA
    tf-graph c.lua >c.tfg
    tf-exec -g c.tfg --run all --feed 'x=[1.0,2.0,3.0,4.0]' --feed p=true --steps 3 --trace c.trace
    [ "$(tf-show --json c.trace | jq -s 'map(select(.node == "all")) | length')" -eq 3 ]
}

@test "a trace is of the plan that runs: what was fused is one event, named by its ops" {
    cat >f.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {4, 4}}
product = MatMul(x, x)
done = Tanh(BiasAdd(product, Const{dtype = float32, value = {1, 2, 3, 4}}))
entry.run = done
LUA
    tf-graph f.lua >f.tfg
    printf '1,2,3,4\n5,6,7,8\n1,2,3,4\n5,6,7,8\n' >f.csv
    tf-data csv f.csv x=1-4 --batch 4 >f.rec
    tf-exec -g f.tfg --run run --feed f.rec --trace fused >/dev/null
    tf-exec -g f.tfg --run run --feed f.rec --trace apart --without all >/dev/null
    tf-show fused >fused.txt
    grep -Eq '^MatMul\+BiasAdd\+Tanh .* (done|Tanh)$' fused.txt
    [ "$(tf-show --json fused | jq -r 'select(.node) | .op' | grep -c BiasAdd)" -eq 1 ]
    tf-show apart >apart.txt
    for op in MatMul BiasAdd Tanh; do grep -q "^$op " apart.txt; done
}

@test "names of others are printed, not obeyed" {
    /usr/bin/python3 - << 'PYTHON' || skip "no numpy"
import numpy as np
np.savez("e.npz", **{"a\x1b[31m\n": np.float32([1, 2])})
np.savez("t.npz", **{"b\x1b[2J": np.array(["text\x1b[2J"])})
np.savez("o.npz", **{"b\x1b[2J": np.array([{}])})
PYTHON
    [ "$(tf-show e.npz)" = 'a\x1b[31m\x0a  float32[2]  1 2' ]
    tf-show --json e.npz | jq -e '.["a\u001b[31m\n"] == [1, 2]'
    [ "$(tf-show t.npz)" = 'b\x1b[2J  string[1]  "text\x1b[2J"' ]
    run -65 tf-show o.npz
    [[ $output == *"array 'b [2J'"* && $output != *$'\x1b'* ]]
    run -65 tf-data npz e.npz -o e.rec
    [[ $output != *$'\x1b'* ]]
    printf 'a\x1b[31m,b\n1,2\n' > e.csv
    run -0 tf-data csv e.csv x=1 -o e.rec
    [[ $output == *'a\x1b[31m,b' ]]
    run -65 tf-data csv e.csv x=c -o e.rec
    [[ $output != *$'\x1b'* ]]
}
