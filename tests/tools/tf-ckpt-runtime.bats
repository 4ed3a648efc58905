#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-ckpt --max-runtime: the tool ends when the time is over, whatever it is doing.
# shellcheck disable=SC2154  # stderr is of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    printf 'entry init = ^set\nv = Variable() {dtype=float32, shape=[2]}\n%s\n%s\n' \
        'c = Const() {dtype=float32, value=[1,2]}' 'set = Assign(v, c)' | tf-graph --text - >m.tfg
    tf-exec -g m.tfg --run init --save s/
    tf-ckpt init other
}

# It ends with 75 and one line soon after its time, which is a second.
is_stopped() { # LINE COMMAND...
    local line=$1 began=$EPOCHREALTIME
    shift
    run --separate-stderr timeout 20 "$@" --max-runtime 1s --metrics m.prom
    local took=$(((${EPOCHREALTIME/./} - ${began/./}) / 1000))
    said=$(grep -v '^strace: ' <<<"$stderr")
    [[ $status -eq 75 && $said == "tf-ckpt: $line"* && $(wc -l <<<"$said") -eq 1 &&
        $took -ge 1000 && $took -lt 8000 ]] ||
        { echo "$*: $status after $took ms, $stderr" && false; }
    grep -q '^tf_ckpt_exit_status{.*} 75$' m.prom
}

@test "while it waits for a lock" {
    exec 9>>s/writer.lock
    flock 9
    is_stopped "s: locked by " tf-ckpt prune s --lock-wait 60s
    is_stopped "s: locked by " tf-ckpt import s s --lock-wait 1h
    exec 9>&-
}

@test "figures that go to a pipe leave it a pipe" {
    mkfifo figures
    exec 8<>figures 9>>s/writer.lock
    flock 9
    run -75 timeout 20 tf-ckpt prune s --lock-wait 60s --max-runtime 1s --metrics figures
    [ -p figures ]
    exec 9>&-
    run -0 timeout 5 sed '/^tf_ckpt_exit_status/q' <&8
    exec 8>&-
    grep -q '^tf_ckpt_exit_status{.*} 75$' <<<"$output"
}

@test "while it waits for who reads or writes a file" {
    local form
    for form in npz safetensors ckpt; do
        mkfifo pipe.$form
        is_stopped "pipe.$form: export: stopped, as --max-runtime is over" \
            tf-ckpt export s pipe.$form
    done
    is_stopped "pipe.npz: salvage: stopped" tf-ckpt salvage s pipe.npz
    is_stopped "s: diff: stopped" tf-ckpt diff pipe.ckpt s
    is_stopped "other: import: stopped" tf-ckpt import pipe.ckpt other
    tf-ckpt verify other --data
}

@test "while it reads from a disk that hardly answers" {
    strace -qq -o trace.txt -e inject=getppid:error=EIO true || skip "may not trace"
    slow=(strace -f -qq -o trace.txt -e inject=pread64:delay_enter=700000)
    is_stopped "other: copy: stopped" "${slow[@]}" tf-ckpt copy s other
    is_stopped "x.npz: export: stopped" "${slow[@]}" tf-ckpt export s x.npz
    [ -z "$(find . -name '*.tmp' -o -name 'x.npz')" ]
    tf-ckpt verify other --data
    tf-ckpt copy s other --max-runtime 60s
    tf-ckpt diff s other
}
