# SPDX-License-Identifier: Apache-2.0
# Prints the scalars of tf-show --json, a line each: run, name, step, value. For a record without a
# step, its position in the stream counts. Values of a graph or a trace are no scalars.
!/^{"(step|feed)":[0-9]+/ || /^{"step":[0-9]+,"start":[0-9]+,"ns":/ { next }
{
    at = 1
    step = NR
    n = 0
    while ((begin = index(substr($0, at), "\"")) > 0) {
        at += begin - 1
        match(substr($0, at), /"([^"\\]|\\.)*"/)
        word = substr($0, at + 1, RLENGTH - 2)
        at += RLENGTH
        if (substr($0, at, 1) != ":") continue # a text within a tensor
        if (!match(substr($0, at + 1), /^("(NaN|-?Infinity)"|-?[0-9][-+.0-9eE]*)/)) {
            at++
            continue
        }
        value = substr($0, at + 1, RLENGTH)
        at += 1 + RLENGTH
        gsub(/"/, "", value)
        if (word == "step") step = value
        else if (word != "feed") { name[++n] = word; values[n] = value }
    }
    for (i = 1; i <= n; i++) print ENVIRON["RUN"] "\t" name[i] "\t" step "\t" values[i]
}
