#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Functions of the prelude, ops and their gradients at singular points: 0, denormals, infinities,
# NaN, equal values, nothing, one element, more elements than 16 bits count. singular.lua has them.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

setup() {
    use_tools
    set -o pipefail
    cd "$BATS_TEST_TMPDIR" || return 1
}

wrong() { # COMMAND: names of the checks that fail, when it has had the graph
    tf-graph -q "$root/tests/e2e/singular.lua" -o m.tfg 2>names
    grep -o 'check.*' names | cut -f2 >checks
    [ "$(wc -l <checks)" -gt 90 ]
    "$@" <m.tfg | tf-exec -q --run train --fetch right | tf-show --json |
        grep -oE 'true|false' >results
    paste results checks | grep -v '^true' || true
}

@test "singular points have the values that are documented" {
    [ -z "$(wrong cat)" ]
}

@test "and have them in graphs that were simplified" {
    [ -z "$(wrong tf-opt -q --keep right)" ]
}
