#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The pictures of docs/techniques.md.
# shellcheck disable=SC2154  # variables of setup
load ../lib/tools

setup() {
    use_tools
}

@test "pictures are of the graphs that the tools make, and techniques.md has all" {
    "$root/scripts/pictures" --check
    for picture in "$root"/docs/pictures/*.svg; do
        finds -F "(pictures/${picture##*/})" < "$root/docs/techniques.md"
        grep -q '^</svg>$' "$picture"
    done
}
