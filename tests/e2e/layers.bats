#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Recurrent layers, attention, layer normalization and activations, and their gradients, against
# PyTorch's (tests/data/layers, made by make.py there).
# shellcheck disable=SC2154  # root is of use_tools, stderr of run
load ../lib/tools

bats_require_minimum_version 1.5.0

setup() {
    use_tools
    data=$root/tests/data/layers
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
}

agrees() { # GRAPH
    tf-exec -q -g "$1" --run eval | tf-show --json | jq -r 'del(.step) | to_entries[] |
        "\(.key) \(.value | flatten | map(tostring) | join(" "))"' >got
    awk 'NR == FNR { got[$1] = $0; next }
         { n = split(got[$1], value)
           if (n != NF) { print "missing: " $1; bad = 1 }
           for (i = 2; i <= NF; i++) {
               d = value[i] - $i; size = $i < 0 ? -$i : $i
               if (!(d <= 1e-6 * (size + 1e-3) && -d <= 1e-6 * (size + 1e-3))) {
                   print $1, "element", i - 2 ":", value[i], "not", $i; bad = 1
               }
           } }
         END { exit bad }' got "$data/expected.txt"
}

@test "layers and their gradients are PyTorch's, also of the graph that was optimized" {
    tf-graph "$data/layers.lua" >g
    agrees g
    tf-opt g | tf-place >o
    agrees o
}

@test "what has the wrong shape is an error that names it" {
    local call expected
    while IFS='|' read -r call expected; do
        run --separate-stderr -65 tf-graph -e "
            x = Placeholder{dtype = float32, shape = {-1, 6}}
            s = Placeholder{dtype = float32, shape = {-1, 4, 6}}
            long = Placeholder{dtype = float32, shape = {-1, -1, 6}}
            y = $call"
        [[ $stderr = *"$expected"* ]] || { echo "$stderr" && false; }
    done <<'END'
nn.lstm(x, 5)|nn.lstm: tensor 'x' float32[?,6] must have rank 3
nn.gru(long, 5)|nn.gru: dimension 2 of
nn.gru(s, 0)|nn.gru: units must be a whole number of at least 1, not 0
nn.attention(s, s, s, {heads = 4})|nn.attention: 4 heads do not divide a size of 6
nn.attention(x, s, s)|nn.attention: q: tensor 'x' float32[?,6] must have rank 3
nn.layer_norm(Placeholder{dtype = float32, shape = {2, -1}})|nn.layer_norm: dimension 2 of
END
}
