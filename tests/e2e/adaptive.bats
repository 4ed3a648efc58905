#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154 # root is of use_tools, stderr of run
# Optimizers of Adam's kind, weight decay by name and schedules, against PyTorch's (make.py there).
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    data=$root/tests/data/optimizers
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
}

names() {
    cut -d' ' -f1 "$data/expected.txt" | sort -u | paste -sd,
}

# Schedules are float32, all else is float64.
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
