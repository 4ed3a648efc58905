#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Attributes with '_' that tools read refuse a value of another kind, in scripts and in texts.
# shellcheck disable=SC2154  # stderr is of run
bats_require_minimum_version 1.5.0
load ../lib/tools

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
}

# The marks that the sources read or define; offsets of slices are numbers or lists.
marks() {
    {
        grep -rhoE 'node_attr\([^;]*, "_[a-z_]+"' "$root/libcommon" "$root/ops" "$root/bin"
        grep -rhE '^#define [A-Z_]+ "_[a-z_]+"' "$root/libcommon"
        grep -rhoE 'bind_names\([^;]*"_[a-z_]+"' "$root/libcommon"
    } | grep -oE '"_[a-z_]+"' | tr -d '"' | sort -u | grep -v '^_slice_offset$'
}

@test "each mark that a tool reads refuses a number with a fraction" {
    [ "$(marks | wc -l)" -ge 20 ]
    for mark in $(marks); do
        echo "x = Const() {$mark:float=0.5, dtype=float32, value=1}" >g.txt
        run --separate-stderr -65 tf-graph --text g.txt
        [[ $stderr == "tf-graph: g.txt:1: node 'x': Const: attribute '$mark' must be "* ]] ||
            { echo "$mark: $stderr"; false; }
        run --separate-stderr -65 tf-graph -e "x = Const(1.0, {$mark = 0.5})"
        [[ $stderr == "tf-graph: -e:1: Const: attribute '$mark' must be "* ]] ||
            { echo "$mark: $stderr"; false; }
    done
}

@test "a script's text is a mark's type, and what is sent has it" {
    cat >m.lua <<'LUA'
local x = Const({1.5, 2.5}, {device = "/device:CPU:0"})
local y = Neg(x, {_wire = "bfloat16", device = "/device:CPU:0"})
z = Abs(y, {device = "/device:CPU:1"})
LUA
    echo 'task worker:0 unix:w device=CPU:0,CPU:1' >c
    tf-graph m.lua | tf-place -c c | tf-part | tf-show --text >text
    grep -q 'DstT=bfloat16' text
    for wrong in '"bfloat17"' '"int8"' 'float32' 3; do
        run -65 tf-graph -e "x = Const(1.0, {_wire = $wrong})"
    done
}
