#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf, which lists all tools and calls them, and its manual page.
# shellcheck disable=SC2154  # root is of use_tools, stderr of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
}

@test "alone it lists all tools, each with what its own help says" {
    local tool
    tf >listed
    for tool in "$(dirname "$(command -v tf)")"/tf-*; do
        tool=${tool##*/}
        printf '  %-13s %s\n' "$tool" "$("$tool" --help | sed -n '1s/^[^:]*: //p')"
    done | sort >expected
    grep '^  tf-[a-z]*  ' listed | sort | diff expected -
    tf --help | diff listed -
    [ "$(tf --version)" = "tf $(tf-show --version | cut -d' ' -f2)" ]
}

@test "with a tool it is that tool, its input, output and status" {
    tf graph -e 'x = Const(2.0) * 3' | tf exec -g - --fetch x | tf show | finds -x 'step 1  x 6'
    run --separate-stderr -64 tf show --nonsense
    [[ $stderr = "tf-show: "* ]]
    local wrong
    for wrong in shw ../tf-show --nonsense ''; do
        run --separate-stderr -64 tf "$wrong"
        [ "$stderr" = "tf: '$wrong' is no tool; tf alone lists them" ]
        [ -z "$output" ]
    done
}

@test "a full disk and a closed stdout are 74" {
    local option
    for option in --help --version --man; do
        run --separate-stderr -74 bash -c "tf $option >/dev/full"
        [ "$stderr" = 'tf: stdout: cannot be written' ]
        run --separate-stderr -74 bash -c "tf $option >&-"
        [ "$stderr" = 'tf: stdout: cannot be written' ]
    done
}

@test "the manual page names all tools and has no mistake that man sees" {
    tf --man >tf-tools.7
    local tool
    for tool in "$(dirname "$(command -v tf)")"/tf-*; do
        finds -F ".BR ${tool##*/} (1)" <<<"$(sed 's/\\-/-/g' tf-tools.7)"
    done
    command -v man >/dev/null || skip "no man here"
    man --warnings -l tf-tools.7 >page 2>said
    diff said /dev/null
    finds 'TF-TOOLS(7)' page
}

@test "formats have manual pages: what their pages in docs/ say, without mistakes that man sees" {
    local name
    for name in stream text cluster checkpoint data; do
        "$root/scripts/man-page" "tf-$name" 1.0 <"$root/docs/$name.md" >page
        grep -qx '.SH NAME' page
        # each heading, and no markup is left
        [ "$(grep -c '^## ' "$root/docs/$name.md")" -eq "$(($(grep -c '^.SH' page) - 2))" ]
        run -1 grep -nE '^[^.].*(\]\(|\*\*[A-Z])|^\|' page
        command -v man >/dev/null || continue
        man --warnings -l page >shown 2>said
        diff said /dev/null
    done
    "$root/scripts/man-page" tf-things 2 <<'MARKDOWN' | tail -n +5 >page
# Things

A `-x` of [y
and z](y.md), `code` *first*.

| a | b |
|---|---|
| `k` | v |

```
.x\n
```
- one
  [two](b.md)
MARKDOWN
    diff page - <<'PAGE'
.PP
A \fB\-x\fR of y and z, \fBcode\fR \fIfirst\fR.
.TP
\fBk\fR
v
.PP
.EX
\&.x\en
.EE
.IP \(bu 2
one two
PAGE
}
