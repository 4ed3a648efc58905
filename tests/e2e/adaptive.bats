#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # root is of use_tools, stderr of run
# Optimizers of Adam's kind, weight decay by name and schedules, compared with PyTorch (make.py).
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    data=$root/tests/data/optimizers
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
}

teardown() {
    kill_job "$BATS_TEST_TMPDIR/job"
}

names() {
    cut -d' ' -f1 "$data/expected.txt" | sort -u | paste -sd,
}

# Schedules are float32, everything else is float64.
agrees() { # GRAPH
    tf-exec -q -g "$1" --run step --fetch "$(names)" --steps 8 | tf-show --json |
        jq -r '.step as $step | del(.step) | to_entries[] |
               "\(.key) \($step) \([.value] | flatten | map(tostring) | join(" "))"' >got
    awk 'NR == FNR { got[$1 " " $2] = $0; next }
         { n = split(got[$1 " " $2], value)
           if (n != NF) { print "missing: " $1 " " $2; bad = 1 }
           for (i = 3; i <= NF; i++) {
               d = value[i] - $i; size = $i < 0 ? -$i : $i
               if (!(d <= 1e-6 * (size + 1e-3) && -d <= 1e-6 * (size + 1e-3))) {
                   print $1, "step", $2, "element", i - 3 ":", value[i], "not", $i; bad = 1
               }
           } }
         END { exit bad }' got "$data/expected.txt"
}

@test "optimizers and schedules take PyTorch's steps, also of the graph that was optimized" {
    tf-graph "$data/optimizers.lua" >g
    agrees g
    tf-opt --keep "$(names)" g | tf-place >o
    agrees o
}

@test "what an optimizer or a schedule cannot take is refused in a line" {
    local call expected
    while IFS='|' read -r call expected; do
        run --separate-stderr -65 tf-graph -e "
            local w = variable{name = 'hidden/W', shape = {2}}
            entry.train = minimize(L2Loss(w), $call)"
        [[ $stderr = *"$expected"* && $(wc -l <<<"$stderr") = 1 ]] || { echo "$stderr" && false; }
    done <<'END'
optim.adamw{decayed = "/w$"}|optim.adamw: decayed, '/w$', finds the name of no variable
optim.lion{decayed = 1}|optim.lion: decayed must be a pattern of names, not 1
optim.lamb{beta = 1}|optim.lamb has no option 'beta' (it has: decayed, rate, beta1
optim.adafactor|minimize: optim.adafactor makes an optimizer when it is called: optim.adafactor{}
optim.sgd{rate = schedule.cosine{rate = 1, steps = 5}}|schedule.cosine: step must be a tensor
optim.sgd{rate = schedule.warm_up{step = global_step(), rate = 1}}|schedule.warm_up: steps must be
END
}

@test "a weight that has had no gradient stays, with an epsilon of 0 and in 16 bits, too" {
    tf-graph -e '
        local trains, ws = {}, {}
        for _, dtype in ipairs{float16, bfloat16, float32} do
          for _, kind in ipairs{"adamw", "nadam", "radam", "lamb", "lion", "adafactor"} do
            local w = variable{name = kind .. "/" .. dtype, dtype = dtype,
                               init = Const({{3.0, 4.0}, {500.0, 2.0}}, {dtype = dtype})}
            local o = {rate = 0.125, weight_decay = 0}
            if kind ~= "lion" and kind ~= "adafactor" then o.epsilon = 0 end
            local loss = Sum(w * Const({{0.0, 0.0}, {0.0, 1.0}}, {dtype = dtype}), {0, 1})
            trains[#trains + 1] = minimize(loss, optim[kind](o), {variables = {w}})
            ws[#ws + 1] = Cast(Reshape(w, {4}), {DstT = float32})
          end
        end
        all = Pack(ws)
        entry.step = trains' >g
    tf-exec -q -g g --run step --fetch all --steps 9 | tf-show --json >got
    jq -se 'last.all | length == 18 and
            all(.[]; .[0:3] == [3, 4, 500] and .[3] < 2 and .[3] > -900)' got
}

@test "LAMB and Adafactor take norms over all slices of a variable that two tasks share" {
    cat >m.lua <<'LUA'
local w = variable{name = "w", init = Reshape(Cast(Range(1, 13, 1), {DstT = float32}), {4, 3}),
                   partitions = 2}
loss = Sum(Sin(MatMul(Const{{1.0, 2, 3, 4}}, w)), {0, 1}) + L2Loss(Gather(w, {1, 3}))
entry.train = minimize(loss, optim[D.kind]{rate = 0.01, weight_decay = 0.1})
LUA
    for kind in lamb adafactor; do
        tf-graph -D kind=$kind m.lua | tf-opt >m.tfg
        tf-exec -q -g m.tfg --run train --fetch loss --steps 5 | tf-show >one
        rm -rf job
        timeout 60 tf-run --workers 1 --ps 2 --mode sync --fetch loss --steps 5 --job job \
            m.tfg 2>err 3>&- || { cat err; return 1; }
        tf-show job/worker-0.rec >two
        [ "$(wc -l <one)" = 5 ]
        paste -d' ' one two | awk '{ d = $4 / $8 - 1; if (!(d < 1e-6 && d > -1e-6)) exit 1 }'
    done
}
