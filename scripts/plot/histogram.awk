# SPDX-License-Identifier: Apache-2.0
# Draws the distribution of a tensor's elements, from the last record that has it.
END {
    n = read_tensor()
    for (i = 1; i <= n; i++) {
        if (is_number(element[i])) sum += element[i]
        else if (element[i] ~ /^(NaN|-?Infinity)$/) left_out++
        else none("'" ENVIRON["NAME"] "' has texts, not numbers")
    }
    if (!count) none("'" ENVIRON["NAME"] "' has no finite element")
    mean = sum / count
    width_of = (most - least) / bins
    if (width_of <= 0) width_of = least == 0 ? 1 : (least > 0 ? least : -least) * 0.1
    for (i = 1; i <= n; i++) {
        if (!is_number(element[i])) continue
        bin = int((element[i] - least) / width_of)
        counts[bin < bins ? bin : bins - 1]++
        squares += (element[i] - mean) * (element[i] - mean)
    }
    begin_picture(1)
    print "set title " quoted(titled(ENVIRON["NAME"])) \
        " . \"\\n\" . " quoted(sprintf("%d elements, %.6g to %.6g, mean %.6g, deviation %.6g%s",
        count, least, most, mean, sqrt(squares / count),
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
