#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Errors of bad input: one line that names file, node or script line, the right exit code, and no
# partial output that could be taken for a whole one.
# shellcheck disable=SC2154  # variables of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup_file() {
    use_tools
    cp -r "$root/examples/." "$root/tests/data/walkthrough/." "$BATS_FILE_TMPDIR"
    cd "$BATS_FILE_TMPDIR" || return 1
    set -o pipefail
    tf-graph digits.lua | tf-opt | tf-place > digits.tfg
    ./feed --rows 1-1437 --batch 64 > train.rec
    printf '%s\n' 'x = Placeholder{dtype = float32, shape = {2}}' 'y = Neg(x)' 'entry.run = y' |
        tf-graph - | tf-place > neg.tfg
    tf-op RandomUniform '[2]' dtype=float32 -o two.npy
    tf-op RandomUniform '[3]' dtype=float32 -o three.npy
    tf-op Fill '[2]' 1 -o whole.npy
    tf-show --npy train.rec x > x.npy
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return 1
    export TMPDIR=$BATS_TEST_TMPDIR
}

# fails STATUS MESSAGE COMMAND...: exit status and the one line on stderr; a * stands for any text.
fails() {
    local wanted=$1 message=$2
    shift 2
    run --separate-stderr timeout 60 bash -c '"$@" > out' - "$@"
    # shellcheck disable=SC2053  # a pattern
    if [[ $status -ne $wanted || $stderr != $message ]]; then
        printf 'command: %s\nstatus %s, wanted %s\nstderr: %s\nwanted: %s\n' "$*" "$status" \
            "$wanted" "$stderr" "$message"
        return 1
    fi
    # no other tool takes a failed tool's output for whole
    if [[ -s out && $1 != tf-show ]]; then
        run "-$wanted" tf-show out # the next stage hears of it
    fi
}

script() { # STATUS MESSAGE LINE...: of a model script m.lua
    local wanted=$1 message=$2
    shift 2
    printf '%s\n' "$@" > bad.lua
    fails "$wanted" "tf-graph: bad.lua:$message" tf-graph bad.lua
}

text() { # STATUS MESSAGE LINE...: of a graph as text
    local wanted=$1 message=$2
    shift 2
    printf '%s\n' "$@" > bad.txt
    fails "$wanted" "tf-graph: bad.txt:$message" tf-graph --text bad.txt
}

@test "an option that does not exist" {
    fails 64 "tf-exec: unknown option '--fecth'; did you mean --fetch?" tf-exec --fecth loss
    fails 64 "tf-exec: *--steps*many*" tf-exec -g neg.tfg --run run --steps many
}

@test "a stream is not written under the name of an array" {
    fails 64 "tf-exec: y.npy: this would be a stream of records, not an array*" \
        tf-exec -g neg.tfg --fetch x --feed 'x=[1.0,2]' -o y.npy
    fails 64 "tf-exec: m.npz: this would be a stream*" tf-exec -g digits.tfg --run init --save m.npz
    fails 64 "tf-data: d.npy: this would be a stream*" tf-data npy x=x.npy -o d.npy
}

@test "an op or an attribute that does not exist" {
    script 65 "1: *'Matmul'*did you mean 'MatMul'?" 'y = Matmul(1, 2)'
    script 65 "1: Placeholder has no attribute 'colour'" 'x = Placeholder{dtype = float32, colour = 3}'
    text 65 "1: node 'x': unknown op 'Placehodler' (did you mean 'Placeholder'?); ops of your own come with --ops FILE.so" 'x = Placehodler() {}'
    text 65 "1: node 'x': Placeholder: there is no attribute 'colour'" \
        'x = Placeholder() {colour=3, dtype=float32}'
}

@test "wrong types and shapes" {
    script 65 "2: node 'LogicalNot': LogicalNot: input 'x' must be bool, but 'x' is float32" \
        'x = Placeholder{dtype = float32, shape = {2}}' 'LogicalNot(x)'
    script 65 "1: node 'Add': Add: input 'y' is int32, but 'x' is float32" \
        'y = Add(Const(1.5), Const(1, {dtype = int32}))'
    script 65 "2: node 'Add': Add: *\[2]*\[3]*" 'x = Placeholder{dtype = float32, shape = {2}}' \
        'y = x + Const{1.0, 2.0, 3.0}'
}

@test "a cycle, and a name that is there twice" {
    text 65 '1: the graph has a cycle: a <- b <- a' 'a = Neg(b) {T=float32}' 'b = Neg(a) {T=float32}'
    text 65 "2: node 'x': there are two nodes of this name" 'x = NoOp() {}' 'x = NoOp() {}'
    script 65 "2: the name 'x' is taken" 'a = Const(1, {name = "x"})' 'b = Const(2, {name = "x"})'
}

@test "a feed that is missing, or of another shape or type" {
    fails 66 "tf-exec: digits.tfg: node 'y' (digits.lua:4): not fed; --run train needs x float32\[?,64], y int32\[?]" \
        tf-exec -g digits.tfg --run train --feed x=x.npy
    fails 65 "tf-exec: neg.tfg: --feed x: node 'x' (stdin:1): is float32\[2], but is fed float32\[3]" \
        tf-exec -g neg.tfg --run run --feed x=three.npy
    fails 65 "tf-exec: neg.tfg: --feed x: node 'x' (stdin:1): is float32\[2], but is fed int32\[2]" \
        tf-exec -g neg.tfg --run run --feed x=whole.npy
    fails 65 "tf-exec: train.rec: step 1: node 'x' (stdin:1): is float32\[2], but is fed float32\[64,64]" \
        tf-exec -g neg.tfg --run run --feed train.rec
    fails 66 'tf-exec: neg.tfg: --feed x: none.npy: No such file or directory' \
        tf-exec -g neg.tfg --run run --feed x=none.npy
}

@test "an entry or a node that does not exist" {
    fails 65 "tf-exec: digits.tfg: *'trian'*" tf-exec -g digits.tfg --run trian
    fails 65 "tf-exec: digits.tfg: there is no node 'los' (did you mean 'loss'?)" \
        tf-exec -g digits.tfg --fetch los
}

@test "no file, an empty file, a folder" {
    local tool
    : > empty
    for tool in tf-opt tf-place tf-show 'tf-grad --of y --wrt x' 'tf-exec --run run -g'; do
        # shellcheck disable=SC2086  # words
        set -- $tool
        fails 66 "$1: none: No such file or directory" "$@" none
        fails 65 "$1: empty: empty: no stream" "$@" empty
        fails 65 "$1: data: is a directory" "$@" data
    done
    fails 66 'tf-graph: none: No such file or directory' tf-graph none
    fails 65 'tf-graph: data: * a directory' tf-graph data
    fails 66 'tf-data: none.csv: No such file or directory' tf-data csv none.csv x=1
    fails 65 'tf-data: data: is a directory' tf-data csv data x=1
    fails 66 'tf-op: none.npy: No such file or directory' tf-op Neg none.npy
    fails 65 'tf-exec: data: is a directory' tf-exec -g neg.tfg --run run --feed x=two.npy -o data
}

@test "a stream that is cut, at any place" {
    local file bytes n
    for file in digits.tfg train.rec; do
        bytes=$(stat -c %s $file)
        for n in 1 5 100 9000 $((bytes / 2)) $((bytes - 1)); do
            head -c "$n" $file > cut.rec
            fails 65 "tf-show: cut.rec: truncated after $n bytes: no trailer, the stage before did not finish" \
                tf-show cut.rec
        done
    done
    head -c 200000 train.rec > cut.rec
    fails 65 'tf-exec: cut.rec: truncated after 200000 bytes: *' \
        tf-exec -g digits.tfg --run train --feed cut.rec --save cut.ckpt
    [[ ! -e cut.ckpt ]]
}

@test "a stream in which a byte is damaged, at any place" {
    local file n bytes
    for file in digits.tfg train.rec; do
        bytes=$(stat -c %s $file)
        for n in 0 7 100 $((bytes / 2)) $((bytes - 3)); do
            cp $file hurt
            # another byte than the one there
            printf %b "\\x$(printf %02x $(($(od -An -tu1 -j "$n" -N 1 $file) ^ 85)))" |
                dd of=hurt bs=1 seek="$n" conv=notrunc status=none
            run --separate-stderr tf-show hurt
            [[ $status -eq 65 && $stderr == "tf-show: hurt: "* && $stderr != *$'\n'* ]]
        done
    done
    [[ $stderr == 'tf-show: hurt: damaged: the checksum of the header at byte '*' is wrong' ]]
}

@test "sizes that are absurd" {
    fails 65 'tf-show: big: a header of 4294967295 bytes is beyond the limit of *' \
        bash -c 'printf "\xce\xff\xff\xff\xff" > big; tf-show big'
    fails 71 "tf-op: Fill: no memory for *" tf-op Fill '[1000000,1000000]' 1
    fails 65 "tf-op: Fill: a result of shape * is too large" tf-op Fill '[1000000,1000000,100]' 1
    fails 65 "tf-graph: stdin:1: node 'Fill': Fill: a result of shape * is too large" bash -c \
        'echo "x = Fill({100000000, 100000000, 100000000}, 1)" | tf-graph - -o big.tfg'
    text 65 "1: *too large*" 'x = Const() {dtype=float32, value=float32[100000,100000,100000](0)}'
    printf '\x93NUMPY\x01\x00v\x00%-117s\n' \
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999,), }" > big.npy
    fails 65 'tf-op: big.npy: *' tf-op Neg big.npy
}

@test "an error in a script" {
    script 65 "2: no such data" 'local a = 1' 'error("no such data")'
    script 65 "1: unexpected symbol near '='" 'y = = 3'
    script 65 "2: attempt to perform arithmetic on a nil value*" '' 'y = nil + 3'
    script 65 "1: stack overflow*" 'local function f() return f() + 1 end f()'
    script 65 " the script needs more than * MiB of memory" \
        'local s = "x" while true do s = s .. s end'
}

@test "data that is none" {
    printf '1,2\n3,x\n' > bad.csv
    fails 65 "tf-data: bad.csv:2: column 2: 'x' is not a number" tf-data csv bad.csv x=1-2
    printf '1,2\n3\n' > bad.csv
    fails 65 'tf-data: bad.csv:2: 1 columns, but line 1 has 2' tf-data csv bad.csv x=1-2
    fails 65 "tf-data: bad.csv:1: 'x' wants column 3, but there are 2" tf-data csv bad.csv x=1-3
    fails 65 'tf-show: digits.lua: not a tf-tools stream: looks like text' tf-show digits.lua
    fails 65 'tf-opt: train.rec: *' tf-opt train.rec
}

@test "out of memory" {
    fails 71 'tf-op: Fill: no memory *' bash -c "ulimit -v 2000000; tf-op Fill '[100000,10000]' 1"
    # too little memory for the kernels' own libraries
    fails 71 'tf-op: no memory to load kernels *' bash -c 'ulimit -v 200000; tf-op Neg 1.0'
    fails 71 'tf-graph: stdin: out of memory after * MiB' bash -c \
        "ulimit -v 100000; echo 'local t = {} for i = 1, 1e9 do t[i] = i end' | tf-graph -"
}

@test "a full disk" {
    local line
    for line in 'tf-graph digits.lua' 'tf-opt digits.tfg' 'tf-place digits.tfg' './feed --batch 9' \
        'tf-exec -g neg.tfg --run run --feed x=two.npy' 'tf-exec -g digits.tfg --run eval --feed train.rec -q' \
        'tf-op Neg 1.0' 'tf-show digits.tfg' 'tf-show --text digits.tfg' 'tf-op list'; do
        run --separate-stderr bash -c "$line > /dev/full"
        if [[ $status -ne 74 || $stderr != tf-*": stdout: "* || $stderr == *$'\n'* ]]; then
            echo "$line: status $status, $stderr"
            return 1
        fi
    done
    fails 74 'tf-exec: /dev/full: writing: No space left on device' \
        tf-exec -g digits.tfg --run train --feed train.rec --save /dev/full
}

@test "a folder to write to that is not there is noticed before the first step" {
    fails 74 'tf-exec: none/a.ckpt: No such file or directory' \
        tf-exec -g digits.tfg --run train --fetch loss --feed train.rec --save none/a.ckpt
    [[ ! -s out ]]
}

@test "a closed pipe ends a filter quietly" {
    run --separate-stderr bash -c './feed --epochs 100 | head -c 100000 | wc -c; echo "${PIPESTATUS[0]}"'
    [[ ${lines[0]} == 100000 && ${lines[1]} == 0 && -z $stderr ]]
    run --separate-stderr bash -c \
        'tf-exec -g digits.tfg --run train --fetch h --feed train.rec | head -c 100 | wc -c; echo "${PIPESTATUS[0]}"'
    [[ ${lines[0]} == 100 && ${lines[1]} == 141 && -z $stderr ]]
}

@test "a failed tool leaves the file that -o names as it was" {
    echo precious > kept
    fails 65 'tf-opt: train.rec: *' tf-opt train.rec -o kept
    fails 65 'tf-graph: wrong.lua:7: *' tf-graph wrong.lua -o kept
    head -c 200000 train.rec > cut.rec
    fails 65 'tf-exec: cut.rec: truncated *' tf-exec -g digits.tfg --run train --feed cut.rec --save kept
    [[ $(cat kept) == precious ]]
    run -2 ls .kept.*
}

@test "variables that do not fit the graph change nothing" {
    tf-exec -g digits.tfg --run train --feed train.rec --save digits.ckpt
    tf-graph -D units=100 digits.lua | tf-place > other.tfg
    fails 65 "tf-exec: digits.ckpt: *'hidden/W'*float32\[64,128]*" \
        tf-exec -g other.tfg --run eval --restore digits.ckpt --feed train.rec
    [[ ! -s out ]]
}

@test "NaN in training: CheckNumerics names its node and step, --check the origin" {
    tf-graph steep.lua | tf-place > steep.tfg
    fails 65 "tf-exec: steep.tfg: step [0-9]*: node 'loss/check' (steep.lua:9): CheckNumerics: loss is NaN; --check finds the origin" \
        tf-exec -g steep.tfg --run train --feed train.rec
    fails 65 "tf-exec: steep.tfg: step [0-9]*: node 'Log' (steep.lua:8): Log: result is -Inf at *" \
        tf-exec -g steep.tfg --run train --feed train.rec --check
    # a file's name is no error message
    tf-exec -g neg.tfg --feed x=two.npy --fetch x -o 'CheckNumerics: .rec'
    cat train.rec >>'CheckNumerics: .rec'
    fails 65 "tf-exec: CheckNumerics: .rec: step 2: node 'x' (stdin:1): is float32\[2], but is fed float32\[64,64]" \
        tf-exec -g neg.tfg --run run --feed 'CheckNumerics: .rec'
}
