#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The failures of docs/troubleshooting.md, typed as they stand, with the lines that they print.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cp -r "$root/examples" "$BATS_TEST_TMPDIR/typed"
    cd "$BATS_TEST_TMPDIR/typed" || return 1
}

@test "docs/troubleshooting.md" {
    has_terminal
    timeout 100 /usr/bin/python3 "$root/tests/lib/page.py" "$root/docs/troubleshooting.md"
}

# The names of a page's headings, in the form that links to them have, and anchors within it.
headings() {
    sed -n 's/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
    sed -n 's/.*<a id="\([^"]*\)">.*/\1/p' "$1"
}

@test "every page of docs/ is in the index, and each link of a page leads somewhere" {
    cd "$root/docs" || return 1
    for page in *.md; do
        [ "$page" = README.md ] || grep -F "($page" README.md >/dev/null ||
            { echo "$page" && false; }
    done
    awk '/^```/ { code = !code } !code && !/^    / { print FILENAME ":" FNR ":" $0 }' \
        ./*.md ../README.md ../examples/README.md |
        awk -F: -v OFS=: '{ rest = $0; while (match(rest, /\]\([^)]+\)/)) {
            print $1, $2, substr(rest, RSTART, RLENGTH)
            rest = substr(rest, RSTART + RLENGTH) } }' |
        while IFS=: read -r page line link; do
            link=${link#](} link=${link%)} file=${link%%#*} heading=${link#"$file"}
            case $link in http*) continue ;; '#'* | *.*) ;; *) continue ;; esac
            path=$page
            [ -z "$file" ] || path=${page%/*}/$file
            [ -e "$path" ] || { echo "$page:$line: $link" && exit 1; }
            [ -z "$heading" ] || headings "$path" | grep -xF "${heading#\#}" >/dev/null ||
                { echo "$page:$line: $link" && exit 1; }
        done
}
