#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The day of docs/operator.md: its sessions are typed as they stand there, with their output.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cp -r "$root/examples" "$BATS_TEST_TMPDIR/typed"
    cd "$BATS_TEST_TMPDIR/typed" || return 1
}

teardown() {
    kill_job run
}

@test "docs/operator.md" {
    has_terminal
    timeout 200 /usr/bin/python3 "$root/tests/lib/page.py" "$root/docs/operator.md"
}
