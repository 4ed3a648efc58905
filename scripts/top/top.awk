# SPDX-License-Identifier: Apache-2.0
# Prints a table of two samples (sample.awk), and who waits for whom.
function size(bytes,    unit) {
    for (unit = 1; bytes >= 1000 && unit < 6; unit++) bytes /= 1024
    return sprintf(unit > 1 && bytes < 100 ? "%.1f%s" : "%d%s", bytes, substr("BKMGTP", unit, 1))
}

function rate(array, key) {
    if (span <= 0 || !((0, key) in array) || !((1, key) in array)) return -1
    return array[1, key] < array[0, key] ? -1 : (array[1, key] - array[0, key]) / span
}

function number(value, format) {
    return value < 0 || value == "" ? "-" : sprintf(format, value)
}

END {
    span = time[0] > 0 ? time[1] - time[0] : 0
    printf "job: %s%s, step %s", state, why == "" ? "" : " (" why ")", step
    if (span > 0 && step >= step_before) printf ", %.4g steps/s", (step - step_before) / span
    printf ", %s of %s restarts%s\n", restarts, most, state == "over" ? ", exit " result : ""
    print "TASK       STATE    RST     CLOCK CLOCKS/S BEHIND WAIT%    IN/S   OUT/S  SEEN"
    for (i = 1; i <= n_tasks; i++) {
        task = tasks[i]
        waits = rate(waited, task)
        if (waits > 1) waits = 1
        in_rate = rate(came, task)
        out_rate = rate(went, task)
        printf "%-10.10s %-8.8s %3s %9s %8s %6s %5s %7s %7s %5s\n", task, state_of[task],
            restarts_of[task], ((1, task) in clock) ? clock[1, task] : "-",
            number(rate(clock, task), "%.1f"), number(behind[task], "%d"),
            number(waits < 0 ? waits : 100 * waits, "%.0f"), in_rate < 0 ? "-" : size(in_rate),
            out_rate < 0 ? "-" : size(out_rate),
            (task in seen) ? sprintf("%.1fs", seen[task]) : number(still[task], "%.1fs")
        if (waits < 0) continue
        n_waiting++
        if (least == "" || waits < least) { least = waits; slowest = task }
        if (most_waits == "" || waits > most_waits) { most_waits = waits; patient = task }
    }
    if (n_waiting > 1 && most_waits - least > 0.2)
        printf "%s waits for %s: %.0f%% of its time, which itself waits %.0f%%\n", patient, slowest,
            100 * most_waits, 100 * least
    for (task in unsaved) printf "%s could not save: %s\n", task, unsaved[task]
    if (unanswered != "") print unanswered
}
