#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The test runner: its counts, and the tests that it runs again.
# shellcheck disable=SC2154  # variables of run
bats_require_minimum_version 1.5.0

setup() {
    runner=$BATS_TEST_DIRNAME/../lib/run
    cd "$BATS_TEST_TMPDIR" || return 1
}

program() { # NAME: a shell script of stdin, which appends to NAME.runs when it is run
    { printf '#!/bin/sh\necho x >>%s.runs\n' "$1" && cat; } >"$1"
    chmod +x "$1"
}

flickering() { # NAME: fails when it is run for the first time
    program "$1" <<SH
echo 1..1; [ "\$(wc -l <$1.runs)" -gt 1 ] && echo 'ok 1' && exit
echo 'not ok 1'; exit 1
SH
}

runs() { # NAME
    wc -l <"$1.runs"
}

@test "lines are counted, and the end of what does not end well" {
    program good <<<"echo 1..2; echo 'ok 1 a'; echo 'ok 2 b # SKIP no card'"
    program bad <<<"echo 1..2; echo 'ok 1 a'; echo 'not ok 2 b'; exit 1"
    program planless <<<"echo 'ok 1 a'"
    program late <<<"echo 1..1; sleep 100"
    run "$runner" -o . ./good
    [ "$status" -eq 0 ]
    [ "${lines[-1]}" = "1 passed, 0 failed, 1 skipped" ]
    run "$runner" -o . -t 1 ./good ./bad ./planless ./late
    [ "$status" -eq 1 ]
    [ "${lines[-1]}" = "3 passed, 3 failed, 1 skipped" ]
}

@test "what passes alone counts as passed, and is named; what does not is a failure" {
    flickering twice
    program bad <<<"echo 1..1; echo 'not ok 1'; exit 1"
    run "$runner" -r 2 -o . -g first ./twice
    [ "$status" -eq 0 ]
    [ "${lines[-2]}" = "flickers: first: ./twice" ]
    [ "${lines[-1]}" = "1 passed, 0 failed, 0 skipped" ]
    [ "$(runs twice)" -eq 2 ]
    grep -q 'not ok' ._twice.log.first
    run "$runner" -r 2 -o . ./bad
    [ "$status" -eq 1 ]
    [ "${lines[-1]}" = "0 passed, 1 failed, 0 skipped" ]
    [ "$(runs bad)" -eq 3 ]
    run -1 grep -q flickers: <<<"$output"
}

@test "reports of sanitizers, crashes and wrong digests are not run again" {
    program asan <<<"echo 1..1; echo '==1==ERROR: AddressSanitizer: heap-use-after-free'; exit 1"
    program tsan <<<"echo 1..1; echo 'WARNING: ThreadSanitizer: data race'; exit 66"
    program ubsan <<<"echo 1..1; echo 'a.c:1:2: runtime error: shift exponent'; exit 1"
    program crash <<<'echo 1..1; kill -SEGV $$'
    program digest <<<"echo 1..1; echo 'not ok 1 - the digest of w differs'; exit 1"
    for name in asan tsan ubsan crash digest; do
        run "$runner" -r 2 -o . "./$name"
        [ "$status" -eq 1 ]
        [ "${lines[-1]}" = "0 passed, 1 failed, 0 skipped" ]
        [ "$(runs "$name")" -eq 1 ]
    done
}

@test "four that flicker fail the run" {
    for name in a b c d; do flickering "$name"; done
    run "$runner" -r 2 -o . ./a ./b ./c
    [ "$status" -eq 0 ]
    rm -f ./*.runs
    run "$runner" -r 2 -o . ./a ./b ./c ./d
    [ "$status" -eq 1 ]
    [ "${lines[-2]}" = "flickers: ./a ./b ./c ./d" ]
    [ "${lines[-1]}" = "4 passed, 1 failed, 0 skipped" ]
}
