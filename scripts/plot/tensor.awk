# SPDX-License-Identifier: Apache-2.0
# Reads tensor ENVIRON["NAME"] of the last record of tf-show --json that has it.
BEGIN { key = "\"" ENVIRON["NAME"] "\":" }
index($0, key) { last = $0 }

# Puts its elements, as texts, into element[1..n], its extents into dims[1..rank]; returns n. Of the
# elements, `count` are numbers, from `least` to `most`.
function read_tensor(    text, i, n, closed, arrays, value) {
    if (last == "") none("no tensor '" ENVIRON["NAME"] "'")
    text = substr(last, index(last, key) + length(key))
    rank = 0
    match(text, text ~ /^\[/ ? "\\](,\"[^\"]*\":|}$)" : ".[,}]")
    text = substr(text, 1, RSTART)
    while (substr(text, rank + 1, 1) == "[") rank++
    # Between two arrays of a depth stand as many brackets as arrays end there, and a comma.
    closed = ""
    for (i = rank; i >= 1; i--) {
        closed = closed "\\]"
        arrays[i] = i > 1 ? 1 + gsub(closed ",", "&", text) : 1
    }
    gsub(/[][" ]/, "", text)
    n = split(text, element, ",")
    arrays[rank + 1] = n
    for (i = 1; i <= rank; i++) dims[i] = arrays[i + 1] / arrays[i]
    for (i = 1; i <= n; i++) {
        if (!is_number(element[i])) continue
        value = element[i] + 0
        if (!count++ || value < least) least = value
        if (count == 1 || value > most) most = value
    }
    return n
}
