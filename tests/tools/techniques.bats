#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The commands of docs/techniques.md.
# shellcheck disable=SC2154  # root is of use_tools
load ../lib/tools

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
    local i
    for i in 0 1 2 3; do echo "task worker:$i unix:w$i host=h$((i / 2))"; done >c
    printf 'task ps:%d unix:p%d\n' 0 0 1 1 >>c
    cat >m.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 8, 8, 1}}
y = Placeholder{dtype = int32, shape = {-1}}
local h = nn.dense(nn.flatten(nn.conv2d(x, 4, 3, {name = "conv"})), 64, {name = "h"})
loss = nn.cross_entropy(nn.dense(h, 40), y)
entry.train = minimize(loss, optim.momentum{rate = 0.1})
LUA
    tf-graph m.lua | tf-opt >m.tfg
}

# A line for each technique's command: its options, with numbers in place of their names.
commands() {
    awk '/^\| technique \| a worker sends/ { on = 1 } !NF { on = 0 }
         on { n = split($0, cell, "|"); print cell[n - 1] }' "$root/docs/techniques.md" |
        grep -o '`[^`]*`' | tr -d '`' |
        sed 's/^dense=/--mode allreduce,dense=/; s/ C$/ c/
             s/\([ =]\)[NMGS]\b/\12/g; s/=X$/=0.1/' | grep -- --
}

@test "each makes of a model what can be placed and cut" {
    local options place line n=0
    commands >lines
    cat lines
    while read -r line; do
        options=() place=()
        if [[ $line == tf-place* ]]; then
            read -ra place <<<"${line#tf-place}"
        else
            read -ra options <<<"$line"
        fi
        [[ $line == *" c" || $line == *-graph* || $line == *--grid* ]] || options+=(-c c)
        tf-replicate "${options[@]}" m.tfg | tf-place -c c "${place[@]}" | tf-part >p.tfg
        [ "$(tf-show p.tfg | grep -c '^graph')" -ge 1 ]
        ((n += 1))
    done <lines
    [ $n -ge 30 ]
}
