# SPDX-License-Identifier: Apache-2.0
# What all pictures share. A text of the user's is in quotes where gnuplot reads it.

function quoted(text) {
    gsub(/'/, "''", text)
    return "'" text "'"
}

function none(reason) {
    print "none " reason
    is_none = 1
    exit
}

function begin_picture(rows) {
    if (terminal == "dumb") {
        if (height < 12 * rows) height = 12 * rows
        printf "set terminal dumb size %d,%d noenhanced\n", width, height
    } else {
        printf "set terminal %s size %d,%d noenhanced%s\n", terminal, width, height,
            (terminal == "sixelgd" ? "" : " background '#ffffff'")
    }
    print "set tics nomirror"
    print "set border 3"
}

# The elements of tensor ENVIRON["NAME"] in a line of tf-show --json, as texts in element[1..n], its
# extents in dims[1..rank]; 0 if there is none.
function read_tensor(line, element, dims,    key, at, text, i, n, closed, arrays) {
    key = "\"" ENVIRON["NAME"] "\":"
    at = index(line, key)
    if (!at) return 0
    text = substr(line, at + length(key))
    rank = 0
    if (text !~ /^\[/) {
        match(text, /[,}]/)
        element[1] = substr(text, 1, RSTART - 1)
        gsub(/"/, "", element[1])
        return 1
    }
    match(text, /\](,"[^"]*":|}$)/)
    text = substr(text, 1, RSTART)
    while (substr(text, rank + 1, 1) == "[") rank++
    # Two arrays of a depth have as many brackets between them as they close, and a comma.
    closed = ""
    for (i = rank; i >= 1; i--) {
        closed = closed "\\]"
        arrays[i] = i > 1 ? 1 + gsub(closed ",", "&", text) : 1
    }
    gsub(/[][" ]/, "", text)
    n = split(text, element, ",")
    arrays[rank + 1] = n
    for (i = 1; i <= rank; i++) dims[i] = arrays[i + 1] / arrays[i]
    return n
}

function is_number(text) {
    return text ~ /^-?[0-9]/
}
