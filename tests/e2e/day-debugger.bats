#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The day of docs/debugger.md: its sessions are typed as they stand there, with their output.
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

@test "docs/debugger.md" {
    has_terminal
    command -v gnuplot >/dev/null || skip "no gnuplot here"
    timeout 200 /usr/bin/python3 "$root/tests/lib/page.py" "$root/docs/debugger.md"
    # steps that are rerun alone equal those of the job, dropout included
    tf-data cut 41-43 pages.rec | tf-exec -q -g bright.tfg --run train --restore ck@40 \
        --first-step 41 --fetch loss | tf-show --json | jq -c '[.step, .loss]' >again
    [ "$(wc -l <again)" -eq 3 ]
    tf-show --json run/worker-0.0.rec | jq -c 'select(.step > 40 and .step < 44) | [.step, .loss]' |
        jq -es --slurpfile again again 'length == 3 and
            ([., $again] | transpose | all(.[0][0] == .[1][0] and
                ((.[0][1] - .[1][1]) | fabs < 1e-5)))'
    # the row that --check names is the blank one, and no other
    tf-show --csv bad.fetched scale >scales
    [ "$(grep -n inf scales)" = 3:inf ]
    tf-show --csv bad.rec x >rows
    [ "$(grep -nx '0\(,0\)*' rows | cut -d: -f1)" = 3 ]
}
