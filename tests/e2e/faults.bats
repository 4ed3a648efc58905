#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The tools when the system refuses: missing memory, disks that fail or are full, calls that are
# interrupted or return less than was asked for (tests/lib/faults.c). Of each sort FAULTS places are
# tried (8), spread over the run; FAULTS=all tries every one.
# shellcheck disable=SC2154,SC2030,SC2031  # variables of run
load ../lib/tools

bats_require_minimum_version 1.5.0

tools=(tf-graph tf-text tf-opt tf-place tf-grad tf-data tf-op tf-show tf-exec)

setup_file() {
    use_tools
    export FAULTS_SO=$root/${BUILD:-build}/tests/lib/faults.so
    export OMP_NUM_THREADS=2
    cd "$BATS_FILE_TMPDIR" || return 1
    cp "$root/examples/digits.lua" . && cp "$root/examples/data/digits.csv.gz" .
    sed '/entry.train/d' digits.lua >forward.lua
    tf-graph digits.lua -o digits.tfg
    tf-graph forward.lua -o forward.tfg
    tf-show --text digits.tfg -o digits.txt
    tf-data csv digits.csv.gz x=1-64 y=65:int32 --batch 64 --steps 4 -o train.rec
}

setup() {
    [[ -e $FAULTS_SO ]] || skip "needs $FAULTS_SO"
    cd "$BATS_FILE_TMPDIR" || return 1
}

# Sets `command` to a run of TOOL that writes out/OUT, and out/SAVE if it has a second file.
command_of() { # TOOL
    case $1 in
    tf-graph) command=(tf-graph digits.lua) ;;
    tf-text) command=(tf-graph --text digits.txt) ;;
    tf-grad) command=(tf-grad --minimize loss forward.tfg) ;;
    tf-data) command=(tf-data csv digits.csv.gz x=1-64 y=65:int32 --batch 64 --steps 4) ;;
    tf-op) command=(tf-op MatMul '[[1.0,2],[3,4]]' '[[1.0],[1]]') ;;
    tf-show) command=(tf-show train.rec) ;;
    tf-exec) command=(tf-exec -g digits.tfg --run train --feed train.rec --fetch loss
        --save out/SAVE) ;;
    *) command=("$1" digits.tfg) ;;
    esac
    command+=(-o out/OUT)
}

# Runs TOOL with a fault; sets status, stderr, and `left`: the files in out/.
faulty() { # TOOL FAULT
    local command
    command_of "$1"
    rm -rf out && mkdir out
    run --separate-stderr timeout 60 env LD_PRELOAD="$FAULTS_SO" FAULT="$2" \
        FAULT_COUNT="$PWD/counts" "${command[@]}" </dev/null
    left=$(cd out && find . -type f | sort)
}

report() { # TOOL FAULT
    echo "$1, $2: status $status, left behind: $left"
    echo "  stderr: $stderr"
    return 1
}

# Places at which a call fails: all of N, or FAULTS of them.
places() { # N
    local most=${FAULTS:-8} i
    if [[ $most == all ]] || (($1 <= most)); then
        seq 1 "$1"
    else
        for ((i = 0; i < most; i++)); do
            echo $((1 + i * ($1 - 1) / (most - 1)))
        done
    fi
}

# Messages of libgfortran, glibc and the dynamic loader, each in its own form, while they start.
# glibc ends the process at once when kernels' libraries first use memory of a thread: the file is
# then there under its name, its temporary one or not at all, as after kill -9.
is_of_others() {
    case "$status $stderr" in
    "1 Operating system error: Cannot allocate memory"*) [[ $left != *.tmp* ]] ;;
    "127 cannot allocate memory for thread-local data: ABORT") true ;;
    "78 tf-"*": cannot load kernels: "*) [[ $left != *.tmp* ]] ;;
    *) false ;;
    esac
}

# Either the fault had no effect and the result is whole, or there is one line with the right
# status, and nothing half-written is left.
fails_cleanly() { # STATUS TOOL FAULT
    faulty "$2" "$3"
    case $status in
    0) [[ -z $stderr && $left == *OUT* && $left != *.tmp* ]] ;;
    "$1") [[ $stderr == tf-*": "* && $stderr != *$'\n'* && $left != *OUT* && $left != *.tmp* ]] ;;
    *) is_of_others ;;
    esac || report "$2" "$3"
}

each_place() { # STATUS CALL FAULT
    local tool place n wrong=0
    for tool in "${tools[@]}"; do
        faulty "$tool" none
        [[ $status -eq 0 ]] || report "$tool" none
        n=$(sed -n "s/^$2 //p" counts)
        for place in $(places "$n"); do
            fails_cleanly "$1" "$tool" "$3:$place" || wrong=1
        done
    done
    return "$wrong"
}

@test "one allocation fails: the result is whole or the status is 71" {
    each_place 71 memory once
}

@test "no memory from some moment on: status 71" {
    each_place 71 memory memory
}

@test "reading fails: status 74" {
    each_place 74 read read
}

@test "the disk is full from some write on: status 74" {
    each_place 74 write write
}

@test "what cannot be made durable or renamed is not there: status 74" {
    local tool fault
    for tool in "${tools[@]}"; do
        for fault in fsync rename; do
            faulty "$tool" "$fault"
            [[ $status -eq 74 && $stderr != *$'\n'* && -z $left ]] || report "$tool" "$fault"
        done
    done
}

@test "short and interrupted calls change nothing" {
    local tool fault
    for tool in "${tools[@]}"; do
        faulty "$tool" none
        cksum <out/OUT >wanted
        for fault in short eintr; do
            faulty "$tool" "$fault"
            [[ $status -eq 0 && -z $stderr ]] || report "$tool" "$fault"
            cksum <out/OUT | cmp - wanted
        done
    done
}

@test "a limit on the size of files is an error, not a death" {
    run --separate-stderr bash -c 'ulimit -f 1; tf-show -v train.rec -o out/limited'
    [[ $status -eq 74 && $stderr == "tf-show: "*"File too large" ]]
    run --separate-stderr bash -c 'ulimit -f 1; tf-opt digits.tfg -o out/limited'
    [[ $status -eq 74 && $stderr == "tf-opt: "*"File too large" ]]
    [[ -z $(find out -name '*limited*') ]]
}

@test "without one of the three standard streams, no file gets what was meant for it" {
    local close
    for close in '<&-' '>&-' '2>&-' '<&- >&- 2>&-'; do
        rm -f sum.tfg
        run bash -c "tf-opt digits.tfg -o sum.tfg $close"
        [[ $status -eq 0 ]]
        tf-show sum.tfg >/dev/null
    done
    run --separate-stderr bash -c 'tf-opt <&- >/dev/null'
    [[ $status -eq 74 && $stderr == "tf-opt: stdin: "* ]]
    run --separate-stderr bash -c 'tf-opt digits.tfg >&-'
    [[ $status -eq 74 && $stderr == "tf-opt: stdout: "* ]]
}

# A signal while the tool waits for input, with a half-written file.
dies_cleanly() { # SIGNAL
    local pid
    rm -rf out && mkdir out
    mkfifo out/fifo
    tf-data csv out/fifo x=1 --steps 100 --epochs 1 -o out/OUT 2>err &
    pid=$!
    exec 8>out/fifo
    for _ in {1..50}; do
        [[ -z $(compgen -G 'out/.*.tmp') ]] || break
        sleep 0.02
    done
    kill "-$1" "$pid"
    run wait "$pid"
    exec 8>&-
    [[ $status -gt 128 && ! -e out/OUT && -z $(compgen -G 'out/.*.tmp') ]] || report tf-data "$1"
}

@test "a signal in the middle leaves nothing behind" {
    local signal
    for signal in TERM HUP QUIT PIPE ABRT; do
        dies_cleanly "$signal"
    done
}

@test "a temporary name that is taken by a link is not written through" {
    mkdir -p shared
    echo precious >precious
    # the name that the process will choose: exec keeps the shell's pid
    run bash -c 'ln -s ../precious "shared/.OUT.$$.tmp"
        exec tf-opt digits.tfg -o shared/OUT'
    [[ $status -eq 0 && $(<precious) == precious && ! -L shared/OUT ]]
    tf-show shared/OUT >/dev/null
}
