#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# tf-replicate --grid: images in tiles, and the clock of tiles on shards.
# shellcheck disable=SC2030,SC2031,SC2154  # status, output and stderr are of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
}

@test "--grid cuts images and filters of positions; what has no images is refused" {
    cat >tiles.lua <<'LUA'
x = Placeholder{dtype = float32, shape = {-1, 7, 6, 2}}
local c = nn.locally_connected2d(nn.conv2d(x, 3, 3, {name = "c"}), 2, 3, {name = "l"})
loss = Mean(Square(c), {0, 1, 2, 3})
entry.train = minimize(loss, optim.momentum{rate = 0.1})
LUA
    tf-graph tiles.lua | tf-opt >tiles.tfg
    tf-replicate --grid 2x3 tiles.tfg | tf-show --text >t.txt
    grep '^l/W/part_4 = Variable()' t.txt >part.txt
    cat part.txt
    grep -q '_slice_of="l/W"' part.txt
    grep -q '_slice_offset=\[3,2,0,0,0,0\]' part.txt
    grep -q 'shape=\[4,2,3,3,3,2\]' part.txt
    grep -q '@?/job:worker/task:4 ' part.txt
    [ "$(grep -c '^l/W/momentum/part_[0-5] = Variable' t.txt)" = 6 ]
    [ "$(grep -c '^c/W = Variable' t.txt)" = 1 ]
    for grid in 2 1x1 2x2x2 40x40; do
        run -64 tf-replicate --grid $grid tiles.tfg
        [ "$status" = 64 ]
        [[ "$output" == *"--grid is ROWSxCOLUMNS of 2 to 1024 tiles"* ]]
    done
    run -64 tf-replicate --grid 2x2 --mode async tiles.tfg
    [ "$status" = 64 ]
    run -64 tf-replicate --grid 2x2 --towers /device:CPU:0 tiles.tfg
    [ "$status" = 64 ]
    tf-graph -e 'x = Placeholder{dtype = float32, shape = {-1, 4}}
        entry.train = minimize(Mean(nn.dense(x, 3), {0, 1}), optim.sgd{})' >m.tfg
    run -65 tf-replicate --grid 2x2 m.tfg
    [ "$status" = 65 ]
    [[ "$output" == *"no op with windows has images of known size that 2 x 2 tiles can"* ]]
}

@test "tiles on shards have a clock, whose rounds are the driver's steps" {
    cat >c.lua <<'LUA'
local x = Placeholder{dtype = float32, shape = {-1, 8, 8, 2}, name = "x"}
local h = nn.conv2d(x, 4, 3, {name = "c"})
loss = Mean(Square(h), {0, 1, 2, 3})
if not D.eval then entry.train = minimize(loss, optim.momentum{rate = 0.1}) end
if D.second then entry.other = minimize(Mean(Abs(h), {0, 1, 2, 3}), optim.sgd{}) end
if D.again then entry.again = control({entry.train}, function() return Identity(loss) end) end
LUA
    local on=(tf-replicate --grid 2x2 --towers '/job:ps/task:*')
    tf-graph c.lua | tf-opt >c.tfg
    "${on[@]}" c.tfg | tf-show --text >t.txt
    grep -q '^clock/round = ClockRound() {clock="train".* entry="".*policy="sync", workers=1' t.txt
    # nothing changes before the round, and the round ends when everything has changed
    grep -q '^update/c/W/ApplyMomentum = .*^clock/begun' t.txt
    grep -q '^clock/updated = NoOp(.*^update/c/W/ApplyMomentum' t.txt
    grep -q '^clock/advance = ClockAdvance(clock/round, ^clock/updated' t.txt
    # nor does the round begin before the loss is known to be a number
    grep -q '^clock/computed = NoOp(.*^loss/check' t.txt
    grep -q '^clock/push = ClockPush(clock/version, ^clock/computed' t.txt
    # graphs that do not train, or run on workers, stay as they are
    [ "$(tf-replicate --grid 2x2 c.tfg | tf-show --text | grep -c clock/)" = 0 ]
    [ "$(tf-graph c.lua -D eval=1 | tf-opt | "${on[@]}" | tf-show --text | grep -c clock/)" = 0 ]
    tf-graph c.lua -D second=1 | tf-opt >two.tfg
    run -65 --separate-stderr "${on[@]}" two.tfg
    [[ "$stderr" == *"both 'train' and 'other' train: say with --entry which one counts steps" ]]
    tf-graph c.lua -D again=1 | tf-opt >again.tfg
    run -65 --separate-stderr "${on[@]}" --entry train again.tfg
    [[ "$stderr" == *"the entry 'again' needs node "*", which changes in a step of 'train' only" ]]
    run -65 --separate-stderr "${on[@]}" --entry nobody c.tfg
    [[ "$stderr" == *"the entry 'nobody' does not exist or nothing of it trains" ]]
    [ "$(wc -l <<<"$stderr")" -eq 1 ]
}
