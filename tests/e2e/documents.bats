#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The commands that README and docs/ tell people to type are typed here, literally. A page's
# commands are its blocks that begin with ```sh: one shell session, from the top of a built
# checkout, in which every command must succeed.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    mkdir checkout home
    cp -a "$root"/{README.md,LICENSE,Makefile,docs,examples,scripts} checkout
    ln -s "$root"/{bin,build,checkpoint,libcommon,ops,ps,tests,transport} checkout
    export HOME=$PWD/home
}

teardown() {
    cd "$BATS_TEST_TMPDIR/checkout" || return 1
    local folder
    for folder in examples/*/ ./*/; do kill_job "$folder"; done
}

# The commands of a page.
commands() {
    awk '/^```/ { typed = $0 == "```sh"; next } typed' "$1"
}

# types PAGE: types all of its commands. A writer whose reader stops early ends by SIGPIPE (141).
types() {
    commands "$root/$1" >typed
    [ -s typed ]
    {
        echo 'set -o pipefail; trap "kill \$(jobs -p) 2>/dev/null || :" EXIT'
        # shellcheck disable=SC2016
        echo 'trap '\''status=$?; [ $status = 141 ] || {
            echo "ended with $status: $BASH_COMMAND" >&2; exit $status; }'\'' ERR'
        cat typed
    } >session
    unset MAKEFLAGS MFLAGS
    (cd checkout && timeout 300 bash ../session) >out 2>err 3>&- || { cat out err && false; }
}

# pages: all pages with commands to type
pages() {
    (cd "$root" && grep -l '^```sh$' README.md examples/README.md docs/*.md)
}

@test "README.md" {
    PATH=${PATH//"$root/build/bin:"/}
    types README.md
    local line
    for line in '^step 1  accuracy 0\.9' 'worker:1 \(pid [0-9]+\) killed by signal 9' \
        'ps:0 \(pid [0-9]+\) killed by signal 9'; do
        grep -Eq "$line" out || { cat out err && return 1; }
    done
}

@test "examples/README.md" {
    types examples/README.md
    grep -q '^step 1  accuracy 0.9' out
}

@test "docs/checkpoint.md" {
    types docs/checkpoint.md
    grep -q 'they differ: exit status 1' out
}

@test "docs/cluster.md" {
    types docs/cluster.md
    grep -q 'y is on /job:localhost/task:0/device:CPU:0: there is no' err
}

@test "docs/costs.md" {
    types docs/costs.md
}

@test "docs/data.md" {
    types docs/data.md
}

@test "docs/half.md" {
    types docs/half.md
}

@test "docs/job.md" {
    types docs/job.md
}

@test "docs/language.md" {
    types docs/language.md
    grep -q '^step 3  f1 0.666667  auc 0.833333  confusion 1 1 1 2$' out
}

@test "docs/library.md" {
    types docs/library.md
    [ "$(grep -c '^y = 3.000 x + -1.000' out)" = 2 ]
}

@test "docs/custom-ops.md" {
    types docs/custom-ops.md
}

@test "docs/patients.md" {
    types docs/patients.md
    grep -q '^id,risk,p.high.,p.low.$' out
}

@test "docs/plots.md" {
    types docs/plots.md
    grep -q 'eval/accuracy #' out
    grep -q '8192 elements' out
    grep -Eq '^thread 1 +\|' out
    [ "$(head -c 4 checkout/examples/digits.png | tail -c 3)" = PNG ]
    grep -q '</svg>' checkout/examples/step.svg
}

@test "docs/replication.md" {
    types docs/replication.md
}

@test "docs/exchange.md" {
    types docs/exchange.md
    grep -Eq 'worker:1 \(pid [0-9]+\) killed by signal 9' out
}

@test "docs/model-parallel.md" {
    types docs/model-parallel.md
}

@test "docs/run.md" {
    types docs/run.md
}

@test "docs/session.md" {
    types docs/session.md
}

@test "docs/supervise.md" {
    types docs/supervise.md
}

@test "docs/text.md" {
    types docs/text.md
}

@test "docs/techniques.md" {
    types docs/techniques.md
}

@test "docs/testing.md" {
    types docs/testing.md
    grep -qx 'ok 2 sync.shard.step.kill' out
}

@test "every page with commands is typed" {
    diff <(pages | sort) <(sed -n 's/^@test "\(.*\.md\)" {$/\1/p' "$BATS_TEST_FILENAME" | sort)
}

# Blocks indented by four blanks are output, scripts and files. They may have commands only if these
# are for other machines: with a card, with a compiler for other processors, or for as long as all
# tests take.
@test "commands that are not typed here are few, and not by accident" {
    cd "$root" || return 1
    awk '/^```/ { typed = /^```(sh|console)$/ } !typed { print FILENAME ":" FNR ":" $0 }' \
        README.md examples/README.md docs/*.md |
        grep -E '^[^:]*:[0-9]*:    (\$ |(tf-[a-z]+|make|cd|kill|\./[a-z]+|cat|cc) [^:]*$)' \
            >"$BATS_TEST_TMPDIR/found"
    local elsewhere='^(README.md:[0-9]+:    make (demo|check) |docs/gpu.md:|docs/portability.md:)'
    elsewhere+='|^docs/ops.md:'
    diff <(grep -vE "$elsewhere" "$BATS_TEST_TMPDIR/found") /dev/null
}
