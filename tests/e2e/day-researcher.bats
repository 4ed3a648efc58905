#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The day of docs/researcher.md: its sessions are typed as they stand there, with their output.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cp -r "$root/examples" "$BATS_TEST_TMPDIR/typed"
    cp "$root/LICENSE" "$BATS_TEST_TMPDIR"
    cd "$BATS_TEST_TMPDIR/typed" || return 1
}

# A model of pairs of bytes, counted in the training rows, needs 3.735 bits for a byte of the other
# rows (NumPy; examples-learn.bats).
@test "docs/researcher.md" {
    has_terminal
    command -v gnuplot >/dev/null || skip "no gnuplot here"
    timeout 200 /usr/bin/python3 "$root/tests/lib/page.py" "$root/docs/researcher.md"
    local net
    for net in gru transformer; do
        tf-exec -q -g $net.tfg --run eval --feed valid.rec --restore $net@best |
            tf-show --json >score
        jq -e '.bits > 1 and .bits < 3.735 and .initials > 0.2 and .initials < 1' score
        # the curve ends at the best; a third of the generated words are words of the text
        tf-show --json $net.rec | jq -es --slurpfile score score \
            '([.[]."eval/bits" | numbers] | min) - $score[0].bits | fabs < 1e-6'
        cut -c 33- $net.txt | tr -cs A-Za-z '\n' >words
        tr -cs A-Za-z '\n' <../LICENSE | sort -u >known
        grep -cxFf known words | awk -v of="$(wc -l <words)" '{ exit !($1 > of / 3) }'
    done
    # two lines in the picture, one per run
    [ "$(grep -o '>eval/bits  [a-z]*.rec<' bits.svg | sort -u | wc -l)" -eq 2 ]
    finds '^</svg>' bits.svg
}
