#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Wrong scripts as a beginner writes them: each gets one line that names the mistake.
# shellcheck disable=SC2154  # root is of use_tools
bats_require_minimum_version 1.5.0
load ../lib/tools

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
}

given='x = Placeholder{dtype = float32, shape = {-1, 4}}
y = Placeholder{dtype = int32, shape = {-1}}'

# wrong.txt: an expression, and the message after its place, in which * is any text.
@test "an expression that is wrong, and the line that says so" {
    local wrong=0 code text said
    while IFS= read -r line && IFS= read -r said; do
        code=0
        text=$(tf-graph -e "$given local z = $line" 2>&1 >/dev/null) || code=$?
        # shellcheck disable=SC2001  # a pattern: all but * stands for itself
        said=$(sed 's/^  //; s/[][\\?]/\\&/g' <<<"$said")
        # shellcheck disable=SC2053  # the right side is a pattern
        [[ $code == 65 && $text == "tf-graph: -e:2: "$said ]] && continue
        printf '%s\n  %s %s\n' "$line" "$code" "$text"
        wrong=1
    done <"$root/tests/tools/wrong.txt"
    [ $wrong = 0 ]
}

@test "no message speaks of the prelude's own lines" {
    tf-graph --time-limit 600s "$root/tests/tools/wrong.lua" 2>said >/dev/null
    [ ! -s said ] || { cat said; false; }
}
