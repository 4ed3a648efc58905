# SPDX-License-Identifier: Apache-2.0
# How the elements of a tensor are spread, of the last record that has it.
{
    if (read_tensor($0, element, dims) > 0) last = $0
}

END {
    n = last == "" ? 0 : read_tensor(last, element, dims)
    if (last == "") none("no tensor '" ENVIRON["NAME"] "'")
    if (is_none) exit
    for (i = 1; i <= n; i++) {
        if (!is_number(element[i])) {
            if (element[i] !~ /^(NaN|-?Infinity)$/) is_text = 1
            left_out++
            continue
        }
        value = element[i] + 0
        if (!count++ || value < least) least = value
        if (count == 1 || value > most) most = value
        sum += value
        squares += value * value
    }
    if (is_text) none("'" ENVIRON["NAME"] "' has texts, not numbers")
    if (is_none) exit
    if (!count) none("'" ENVIRON["NAME"] "' has no finite element")
    if (is_none) exit
    width_of = (most - least) / bins
    if (width_of <= 0) width_of = least == 0 ? 1 : (least > 0 ? least : -least) * 0.1
    for (i = 1; i <= n; i++) {
        if (!is_number(element[i])) continue
        bin = int((element[i] - least) / width_of)
        counts[bin < bins ? bin : bins - 1]++
    }
    mean = sum / count
    variance = squares / count - mean * mean
    begin_picture(1)
    title = (ENVIRON["TITLE"] == "" ? "" : ENVIRON["TITLE"] "  ") ENVIRON["NAME"]
    print "set title " quoted(title) \
        " . \"\\n\" . " quoted(sprintf("%d elements, %.6g to %.6g, mean %.6g, deviation %.6g%s",
        count, least, most, mean, variance > 0 ? sqrt(variance) : 0,
        left_out ? sprintf(", %d not finite", left_out) : ""))
    print "set style fill solid 0.6"
    print "set boxwidth 1 relative"
    print log_axis ? "set logscale y" : "set yrange [0:*]"
    print "$h << EOD"
    for (bin = 0; bin < bins; bin++)
        if (counts[bin] || !log_axis)
            printf "%.9g %d\n", least + (bin + 0.5) * width_of, counts[bin]
    print "EOD"
    printf "set xrange [%.9g:%.9g]\n", least, least + bins * width_of
    printf "plot $h with boxes notitle\n"
}
