# SPDX-License-Identifier: Apache-2.0
# Draws what ran when in one step of traces: a row per thread, a colour or a letter per op, of its
# own for each of the ops that took longest.
BEGIN { FS = "\t"; KINDS = 8 }

{
    if (field($2, "ns") == "" || field($2, "op") == "") next # the entry of the whole step has no op
    n++
    step_of[n] = field($2, "step")
    if (last == "" || step_of[n] + 0 > last) last = step_of[n] + 0
    start[n] = field($2, "start")
    ns[n] = field($2, "ns")
    op[n] = field($2, "op")
    lane[n] = ($1 == "" ? "" : $1 " ") "thread " field($2, "thread")
}

# Starts are large numbers: only their distances from the first one keep all digits.
function since(i) {
    return (start[i] - first) / 1e6
}

END {
    if (!n) none("no event of a trace in it (--trace)")
    wanted = step == "" ? last : step + 0
    for (i = 1; i <= n; i++) {
        if (step_of[i] + 0 != wanted) continue
        chosen[++m] = i
        if (first == "" || start[i] + 0 < first) first = start[i] + 0
        total[op[i]] += ns[i]
        if (lane[i] in lane_number) continue
        lane_number[lane[i]] = ++n_lanes
        lanes[n_lanes] = lane[i]
    }
    if (!m) none(sprintf("no event of step %d: the last is %d", wanted, last))
    for (k = 1; k <= KINDS; k++) {
        longest = ""
        for (name in total)
            if (!(name in kind) && (longest == "" || total[name] > total[longest] ||
                (total[name] == total[longest] && name < longest))) longest = name
        if (longest == "") break
        kind[longest] = k
        names[k] = longest
    }
    n_kinds = k - 1
    for (name in total) if (!(name in kind)) { kind[name] = KINDS + 1; others += total[name] }
    for (i = 1; i <= m; i++) {
        end_of = since(chosen[i]) + ns[chosen[i]] / 1e6
        if (end_of > span) span = end_of
    }
    title = titled(sprintf("step %d, %.6g ms", wanted, span))
    if (terminal == "dumb") draw_text()
    else draw()
}

function draw_text(    l, i, from, to, x, wide, label, k) {
    print "text"
    print title
    for (l = 1; l <= n_lanes; l++) if (length(lanes[l]) > label) label = length(lanes[l])
    wide = width - label - 2
    if (wide < 10) wide = 10
    for (l = 1; l <= n_lanes; l++) {
        split("", cells)
        for (i = 1; i <= m; i++) {
            if (lane[chosen[i]] != lanes[l]) continue
            from = int(since(chosen[i]) / span * wide)
            to = (since(chosen[i]) + ns[chosen[i]] / 1e6) / span * wide
            for (x = from; x < to && x < wide; x++)
                if (!(x in cells) || kind[op[chosen[i]]] < cells[x]) cells[x] = kind[op[chosen[i]]]
        }
        printf "%-" label "s |", lanes[l]
        for (x = 0; x < wide; x++)
            printf "%s", ((x in cells) ? substr("ABCDEFGH+", cells[x], 1) : ".")
        printf "\n"
    }
    for (k = 1; k <= n_kinds; k++)
        printf "%s  %-40s %9.4g ms\n", substr("ABCDEFGH", k, 1), names[k], total[names[k]] / 1e6
    if (others) printf "+  %-40s %9.4g ms\n", "others", others / 1e6
}

function draw(    k, i, l, clauses) {
    begin_picture(1)
    print "set title " quoted(title)
    print "set xlabel 'ms'\nset key below\nset style fill solid 0.8 border lc rgb '#404040'"
    printf "set xrange [0:%.9g]\nset yrange [%g:0.4]\nset ytics (", span * 1.001, n_lanes + 0.6
    for (l = 1; l <= n_lanes; l++) printf "%s%s %d", (l > 1 ? ", " : ""), quoted(lanes[l]), l
    print ")"
    for (k = 1; k <= n_kinds + (others > 0); k++) {
        print "$k" k " << EOD"
        for (i = 1; i <= m; i++)
            if (kind[op[chosen[i]]] == (k > n_kinds ? KINDS + 1 : k))
                printf "%.9g %d %.9g %.9g %g %g\n", since(chosen[i]), lane_number[lane[chosen[i]]],
                    since(chosen[i]), since(chosen[i]) + ns[chosen[i]] / 1e6,
                    lane_number[lane[chosen[i]]] - 0.35, lane_number[lane[chosen[i]]] + 0.35
        print "EOD"
        clauses = clauses (k > 1 ? ", " : "") "$k" k " using 1:2:3:4:5:6 with boxxyerror lc " \
            (k > n_kinds ? "rgb '#c0c0c0'" : k) " title " quoted(k > n_kinds ? "others" : names[k])
    }
    print "plot " clauses
}
