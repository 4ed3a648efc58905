# SPDX-License-Identifier: Apache-2.0
# Draws lines of run, name, step and value as curves: names with the same last part share axes, and
# runs are drawn together.
BEGIN {
    FS = "\t"
    POINTS = 1000 # a longer curve is drawn in parts, by the least and the largest value of each
    n_globs = split(ENVIRON["FETCH"], globs, ",")
    for (i = 1; i <= n_globs; i++) {
        gsub(/[][.+^$(){}|\\]/, "\\\\&", globs[i])
        gsub(/\*/, ".*", globs[i])
        gsub(/\?/, ".", globs[i])
    }
}

function is_wanted(name,    i) {
    if (n_globs == 0) return 1
    for (i = 1; i <= n_globs; i++) if (name ~ "^" globs[i] "$") return 1
    return 0
}

{
    if (!($2 in wanted)) {
        wanted[$2] = is_wanted($2)
        there = there (there == "" ? "" : ", ") $2
    }
    if (!wanted[$2]) next
    curve = $2 FS $1
    if (!(curve in length_of)) {
        panel = $2
        sub(/.*\//, "", panel)
        if (!(panel in panel_curves)) panels[++n_panels] = panel
        panel_curves[panel] = panel_curves[panel] (panel_curves[panel] == "" ? "" : "\n") curve
        if (!($1 in runs)) { runs[$1]; n_runs++ }
    }
    # A resumed run replaces what the former one had beyond that step.
    while (length_of[curve] > 0 && steps[curve, length_of[curve]] >= $3 + 0) length_of[curve]--
    i = ++length_of[curve]
    steps[curve, i] = $3 + 0
    if (first_step == "" || $3 + 0 < first_step) first_step = $3 + 0
    if (last_step == "" || $3 + 0 > last_step) last_step = $3 + 0
    values[curve, i] = $4
}

function put(step, value) {
    printf "%s %.9g\n", step, value
    if (least == "" || value < least) least = value
    if (most == "" || value > most) most = value
}

# Prints the points of a curve as data; returns how many there are.
function put_curve(curve, is_smooth,    i, value, n, part, every, lo, hi, mean, weight) {
    n = length_of[curve]
    every = n > 2 * POINTS ? n / POINTS : 1
    part = -1
    drawn = 0
    lo = hi = 0
    for (i = 1; i <= n; i++) {
        value = values[curve, i]
        if (!is_number(value) || (log_axis && value <= 0)) { if (!is_smooth) left_out++; continue }
        value += 0
        drawn++
        if (is_smooth) {
            mean = smooth * mean + (1 - smooth) * value
            weight = smooth * weight + (1 - smooth)
            value = mean / weight
        }
        if (every == 1) { put(steps[curve, i], value); continue }
        if (int(i / every) != part) {
            if (lo) put_part(curve, lo, hi, low, high)
            part = int(i / every)
            lo = hi = 0
        }
        if (!lo || value < low) { lo = i; low = value }
        if (!hi || value > high) { hi = i; high = value }
    }
    if (lo) put_part(curve, lo, hi, low, high)
    return drawn
}

function put_part(curve, lo, hi, low, high) {
    if (lo < hi) { put(steps[curve, lo], low); put(steps[curve, hi], high) }
    else { put(steps[curve, hi], high); if (lo > hi) put(steps[curve, lo], low) }
}

function title_of(curve,    part) {
    split(curve, part, FS)
    if (part[2] == "") return part[1]
    return n_runs > 1 || part[2] ~ /^worker:/ ? part[1] "  " part[2] : part[1]
}

function draw_panel(p,    n, i, list, names, clause, clauses, pad, note) {
    least = most = ""
    left_out = 0
    n = split(panel_curves[panels[p]], list, "\n")
    clauses = ""
    for (i = 1; i <= n; i++) {
        print "$c" p "_" i " << EOD"
        count = put_curve(list[i], 0)
        print "EOD"
        if (!count) continue
        clause = "$c" p "_" i " with " (count > 1 ? "lines" : "points") " lc " i
        if (smooth > 0) {
            print "$s" p "_" i " << EOD"
            put_curve(list[i], 1)
            print "EOD"
            clause = (terminal == "dumb" ? "" : clause " lw 0.3 notitle, ") "$s" p "_" i \
                " with lines lw 2 lc " i
        }
        clauses = clauses (clauses == "" ? "" : ", ") clause " title " quoted(title_of(list[i]))
    }
    note = left_out ? sprintf("  (%d not drawn: %s)", left_out,
        log_axis ? "not above 0" : "not finite") : ""
    if (clauses == "") { # an empty panel shows why
        print "set title " quoted(panels[p] note)
        print "unset logscale y\nset yrange [0:1]\nplot NaN notitle"
        return
    }
    print "set title " quoted((p == 1 && ENVIRON["TITLE"] != "" ? ENVIRON["TITLE"] : "") note)
    pad = (most - least) * 0.05
    if (pad <= 0) pad = most == 0 ? 1 : (most > 0 ? most : -most) * 0.1
    if (log_axis) printf "set logscale y\nset yrange [%.9g:%.9g]\n", least / 1.1, most * 1.1
    else printf "set yrange [%.9g:%.9g]\n", least - pad, most + pad
    print "plot " clauses
}

END {
    if (there == "") none("no scalar in it: histogram and images draw tensors")
    if (!n_panels) none("no scalar '" ENVIRON["FETCH"] "' (there is: " there ")")
    begin_picture(n_panels)
    if (terminal != "dumb") print "set grid"
    if (last_step == first_step) { first_step--; last_step++ }
    printf "set xrange [%.12g:%.12g]\nset lmargin 9\n", first_step, last_step
    print "set multiplot layout " n_panels ",1"
    for (p = 1; p <= n_panels; p++) draw_panel(p)
    print "unset multiplot"
}
