#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The time of tools grows with the size of their input, and long paths through a graph are no
# problem. For all kinds of graphs and tools, by time and memory: make growth.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
}

kind() { # KIND N [-D...]
    tf-graph -D k="$1" -D n="$2" "$root/tests/growth/growth.lua"
}

@test "instructions grow as the graph does" {
    command -v valgrind > /dev/null || skip "needs valgrind"
    python3 "$root/tests/growth/growth.py" count
}

# GROWTH_CHAIN nodes, each after the one before: by data, by control, by both; and writes.
@test "long chains go through all tools" {
    n=${GROWTH_CHAIN:-30000}
    for kind in chain ctlchain ctlpairs groups assigns reads; do
        kind "$kind" "$n" > m.tfg
        tf-opt -q m.tfg > opt.tfg
        tf-show opt.tfg > shown
        tf-show --text opt.tfg | tf-graph --text > again.tfg
        tf-place -q --devices CPU:0,CPU:1 again.tfg > placed.tfg
        [[ $kind == assigns || $kind == reads ]] || tf-part -q placed.tfg > parts.tfg
        tf-exec -q -g opt.tfg --run go --dump-plan > plan
    done
}

# A variable in slices: a read, a read of a read, a read after a read.
@test "reads of slices behind each other" {
    printf 'task ps:%d unix:p%d\n' 0 0 1 1 > cluster
    echo 'task worker:0 unix:w' >> cluster
    cat > m.lua << 'LUA'
device("/job:ps", function()
  w = variable{name = "w", shape = {3000000}, init = 0.5}
end)
local after, again = NoOp(), w
for i = 1, 3000 do
  after = control({after}, function() return Identity(w) end)
  again = Identity(again)
end
entry.go = group{Sum(after, 0), Sum(again, 0)}
LUA
    tf-graph m.lua | tf-place -q -c cluster > m.tfg
    tf-show --text m.tfg | finds '^w/part_1 '
}

@test "a variable waits for a long chain, and is cut" {
    printf 'task ps:%d unix:p%d\n' 0 0 1 1 > cluster
    echo 'task worker:0 unix:w' >> cluster
    tf-graph - << 'LUA' | tf-place -q -c cluster > m.tfg
local t = NoOp()
for i = 1, 30000 do
  local before = t
  t = control({before}, NoOp)
end
device("/job:ps", function()
  w = control({t}, function() return Variable{dtype = float32, shape = {3000000}, name = "w"} end)
end)
entry.go = Assign(w, Fill({3000000}, 0.5))
LUA
    tf-show --text m.tfg | finds '^w/part_1 '
}

@test "constants that wait for two constants each are planned in a moment" {
    {
        echo 'z = Placeholder() {dtype=float32, shape=[]}'
        echo 'less = Less(z, z)'
        echo 'switch = Switch(z, less)'
        for x in a b; do echo "${x}0 = Const(^switch) {dtype=float32, value=1.0}"; done
        for i in {1..40}; do
            for x in a b; do
                echo "$x$i = Const(^a$((i - 1)), ^b$((i - 1))) {dtype=float32, value=1.0}"
            done
        done
        echo 'sum = Add(a40, b40)'
        echo 'y = Add(sum, z)'
    } | tf-graph --text > m.tfg
    timeout 20 tf-exec -q -g m.tfg --fetch y --feed z=1 < /dev/null | tf-show | finds '  y 3$'
}
