# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For tests in bats that load tools: the output of tf-replicate --explain for a small model.

# wide.tfg has, for 4 rows, two layers of 100 by 50 and one of 50 by 2, and a table of 100 columns
wide() {
    cat >wide.lua <<'END'
x = Placeholder{dtype = float32, name = "x", shape = {-1, 100}}
id = Placeholder{dtype = int32, name = "id", shape = {-1}}
rows = Gather(variable{name = "table", shape = {9, 100}, init = 0}, id)
w = variable{name = "w", shape = {100, 50}, init = 0.1}
t = variable{name = "t", shape = {100, 50}, init = 0.1}
v = variable{name = "v", shape = {50, 2}, init = 0.1}
loss = Mean(Square(MatMul(MatMul(x + rows, w) + MatMul(x, t), v)), {0, 1})
entry.train = minimize(loss, optim.sgd{rate = 0.1})
END
    tf-graph wide.lua | tf-opt >wide.tfg
}

explained() { # OPTION...: VARIABLE, bytes of the gradient, of factors and in code, what is sent
    tf-replicate --explain --assume 4 "$@" wide.tfg 2>&1 >wide.out |
        awk 'NR > 1 && $1 != "exchange" { print $1, $3, $5, $7, $9 }' | sort
}

# factors_taken OPTION...: factors are sent of the two wide layers, of which they are less
factors_taken() {
    explained "$@" | diff - <(
        cat <<'END'
t 20000 2400 - factors
table 16 - - gradient:
table 1600 - - gradient:
v 400 832 - gradient
w 20000 2400 - factors
END
    )
}
