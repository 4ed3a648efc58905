#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2317  # functions that are passed by name
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
}

shows() { # LINE OP...
    local line=$1
    shift
    run -0 bash -c 'set -o pipefail; tf-op "$@" | tf-show' bash "$@"
    [ "$output" = "$line" ] || {
        echo "tf-op $*: '$output', not '$line'"
        return 1
    }
}

fails() { # STATUS TEXT OP...
    local status_wanted=$1 text=$2
    shift 2
    run --separate-stderr -"$status_wanted" bash -c 'tf-op "$@" >out.rec' bash "$@"
    # shellcheck disable=SC2154  # stderr is of run
    [ "$stderr" = "tf-op: $text" ] || {
        echo "tf-op $*: '$stderr', not 'tf-op: $text'"
        return 1
    }
}

@test "literals: one product of matrices" {
    shows 'float32[2,1]  3 7' MatMul '[[1.0,2],[3,4]]' '[[1.0],[1]]'
}

@test "whole numbers stay whole, unless another input or the op says otherwise" {
    shows 'int32[]  3' Add 1 2
    shows 'float32[2]  2 3.5' Add '[1,2.5]' 1
    shows 'float32[]  1' Exp 0
    shows 'float64[]  3' Add 1 2 T=float64
    shows 'bool[2]  true false' LogicalNot '[false,true]'
}

@test "a pipe of ops on random numbers: the rows of a softmax add up to 1" {
    tf-op RandomStandardNormal '[4,3]' dtype=float32 seed=7 -o a.npy
    run -0 bash -c 'tf-op MatMul a.npy a.npy transpose_b=true | tf-op Softmax | tf-op Sum - 1 |
        tf-op Sub - 1 | tf-op Abs | tf-op Less - 1e-6 | tf-op All - 0 | tf-show'
    [ "$output" = "bool[]  true" ]
}

@test "without inputs all of stdin is taken, in order, also from several records" {
    { tf-op Neg 5; tf-op Neg -- -3; } >two.rec
    run -0 bash -c 'tf-op Sub <two.rec | tf-show'
    [ "$output" = "int32[]  -8" ]
    run -0 bash -c 'tf-op Sub two.rec | tf-show'
    [ "$output" = "int32[]  -8" ]
    run -0 bash -c 'tf-op Sub - - <two.rec | tf-show'
    [ "$output" = "int32[]  -8" ]
    run -66 --separate-stderr bash -c 'tf-op AddN - - - <two.rec'
    [ "$stderr" = "tf-op: stdin: no further tensor" ]
}

@test "NumPy's files come from a pipe, too, and are told by what is in them" {
    tf-op Identity '[1.0,2,3]' -o a.npy
    tf-op Softmax a.npy -o wanted.npy
    tf-op Softmax - -o got.npy < a.npy
    cmp got.npy wanted.npy
    # shellcheck disable=SC2002  # a pipe, which cannot be read twice
    cat a.npy | tf-op Softmax -o got.npy
    cmp got.npy wanted.npy
    tf-op Softmax <(cat a.npy) -o got.npy
    cmp got.npy wanted.npy
    tf-graph -e 'y = Softmax(Placeholder{dtype = float32, shape = {3}, name = "x"})' -o y.tfg
    tf-exec -g y.tfg --fetch y --feed x=<(cat a.npy) | tf-show --npy >got.npy
    cmp got.npy wanted.npy
    mkfifo fifo
    cat a.npy >fifo &
    tf-exec -g y.tfg --fetch y --feed x=./fifo | tf-show --npy >got.npy
    cmp got.npy wanted.npy
    run -66 --separate-stderr bash -c 'tf-op Sub - - < a.npy > out.rec'
    [ "$stderr" = "tf-op: stdin: no further tensor" ]
}

@test "an .npy file goes in and out unchanged" {
    tf-op Cast '[[1,2],[3,4]]' DstT=float64 -o a.npy
    tf-op Identity a.npy -o b.npy
    cmp a.npy b.npy
}

@test "several outputs are named, lists take what is left" {
    run -0 bash -c 'tf-op Split 0 "[1,2,3,4]" num_split=2 | tf-show'
    [ "${lines[0]}" = "output0  int32[2]  1 2" ]
    [ "${lines[1]}" = "output1  int32[2]  3 4" ]
    shows 'int32[]  6' AddN 1 2 3
}

@test "what goes wrong is said in one line, and no file is left" {
    fails 65 'MatMul: inner dimensions 2 and 1 differ: float32[1,2] x float32[1,2]' \
        MatMul '[[1.0,2]]' '[[1.0,2]]'
    fails 65 'Div: integer division by zero' Div 1 0
    fails 64 "no op 'MatMu'; did you mean 'MatMul'?" MatMu 1 2
    fails 64 "MatMul has no attribute 'transpose' (did you mean 'transpose_a'?)" \
        MatMul 1 2 transpose=true
    fails 64 "transpose_a=: expected true or false at 'maybe'" MatMul 1 2 transpose_a=maybe
    fails 64 'Add takes 2 inputs, not 3: x: T, y: T' Add 1 2 3
    fails 66 'nothing.npy: No such file or directory' Neg nothing.npy
    fails 64 'which op? tf-op list names all'
    run -65 tf-op Div 1 0 -o c.npy
    [ ! -e c.npy ]
}

@test "list, show and their JSON" {
    run -0 bash -c "tf-op list | grep '^MatMul '"
    [[ $output == "MatMul "*"Product of two matrices"* ]]
    run -0 tf-op show MatMul
    [ "${lines[0]}" = "MatMul(a, b) -> product" ]
    [[ $output == *"transpose_b: bool = false"* ]]
    for op in MatMul Conv2D ClockJoin; do # what is said of it is wrapped, and indented
        tf-op show $op | sed -n '2,/^inputs/p' >text
        run -1 grep -vE '^(inputs.*| {12}[^ ].{,86})$' text
    done
    run -0 bash -c "tf-op show Sum --json | jq -r '.inputs[1].name, .attributes[0].name, .gradient'"
    [ "$output" = $'reduction_indices\nkeep_dims\ntrue' ]
    run -0 bash -c 'tf-op list --json | jq -r .name | diff - <(tf-op list | cut -d" " -f1)'
}

# Values of all sizes, enough to be divided among threads at odd places.
large_input() {
    tf-op RandomStandardNormal '[331,401]' dtype=float32 seed=3 | tf-op Mul - 20 -o x.npy
}

same_bits() { # FILE FILE OP...
    cmp "$1" "$2" || {
        echo "${*:3}: bits differ"
        return 1
    }
}

each_op() { # COMMAND...: for element-wise ops and reductions
    local op axes
    for op in Exp Log Log1p Tanh Sigmoid Erf Sin Cos Sqrt Rsqrt Reciprocal Round; do
        "$@" "$op" x.npy
    done
    for op in Sum Mean Prod Max; do
        for axes in '[0,1]' '[0]' '[1]'; do
            "$@" "$op" x.npy "$axes"
        done
    done
    "$@" Mul x.npy x.npy
    "$@" Div x.npy '[3.0]'
    "$@" Cumsum x.npy 0
    "$@" Cumsum x.npy 1
}

@test "one thread and two give the same bits" {
    check() {
        tf-op --threads 1 "$@" -o one.npy
        tf-op --threads 2 "$@" -o two.npy
        same_bits one.npy two.npy "$@"
    }
    large_input
    each_op check
}

@test "every instruction set gives the same bits" {
    check() {
        TF_CPU_ISA=base tf-op "$@" -o base.npy
        for isa in v3 v4; do
            TF_CPU_ISA=$isa tf-op Neg 1 >/dev/null 2>&1 || continue
            TF_CPU_ISA=$isa tf-op "$@" -o other.npy
            same_bits base.npy other.npy "$@"
        done
    }
    large_input
    each_op check
}

@test "docs/ops.md is what the declarations say; else: make docs" {
    cd "$BATS_TEST_DIRNAME/../.."
    { tf-op list --markdown; tf-op list --types | scripts/ops-types; } | diff docs/ops.md -
}

# oneDNN's barriers wait for every member of the team that it was told of.
@test "a team that OpenMP makes smaller does not hang" {
    tf-op RandomStandardNormal '[4,9,9,4]' dtype=float32 seed=7 -o x.npy
    tf-op RandomStandardNormal '[4,9,9,8]' dtype=float32 seed=8 -o g.npy
    for limit in OMP_THREAD_LIMIT=1 OMP_DYNAMIC=true; do
        env "$limit" timeout 60 tf-op --threads 2 Conv2DBackpropFilter x.npy '[3,3,4,8]' g.npy \
            strides='[1,1,1,1]' padding=SAME -o dw.npy
        [[ $(tf-op Sum dw.npy '[0,1,2,3]' | tf-show) == "float32[]  "* ]]
    done
}

# 400 MB once, without a second copy, and by a team: two billion elements take as long as their
# memory does.
@test "a long result is written where it is fetched from" {
    local bytes
    bytes=$(
        export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
        ulimit -v 850000
        tf-op --threads 1 Range 0 100000000 1 | wc -c
    )
    [ "$bytes" -gt 400000000 ]
    for type in float32 float64 int32 int64; do
        tf-op --threads 1 -o one.npy Range Tidx=$type -- -7 999999 3
        tf-op --threads 3 -o three.npy Range Tidx=$type -- -7 999999 3
        cmp one.npy three.npy
    done
}
