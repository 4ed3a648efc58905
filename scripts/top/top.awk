# SPDX-License-Identifier: Apache-2.0
# A table of two samples of a job, the one before (which may be empty) and now. Each is the time,
# then objects of tf-supervise --status and tf-ps stats --json; cut at each brace they are flat.
BEGIN { RS = "{" }

FNR == 1 { sample = FILENAME == ARGV[2]; time[sample] = $0 + 0; shard = ""; next }
/^"pid":[0-9]+,"state":/ {
    if (sample) {
        state = field($0, "state"); why = field($0, "why"); step = field($0, "step") + 0
        restarts = field($0, "restarts"); most = field($0, "max_restarts")
        result = field($0, "result")
    } else step_before = field($0, "step") + 0
}
/^"task":"[^"]*","pid":/ && sample {
    tasks[++n_tasks] = task = field($0, "task")
    state_of[task] = field($0, "state")
    restarts_of[task] = field($0, "restarts")
}
/^"task":"ps:[^"]*","links":/ {
    shard = field($0, "task")
    came[sample, shard] = field($0, "in") + 0
    went[sample, shard] = field($0, "out") + 0
}
/}?,"seconds":/ {
    still[shard] = field($0, "still")
    if (sample && field($0, "saves_failed") > 0) unsaved[shard] = field($0, "failed_why")
}
# What a shard got from a task has gone from there.
/^"peer":/ {
    came[sample, field($0, "peer")] += field($0, "sent")
    went[sample, field($0, "peer")] += field($0, "got")
}
/^"worker":/ {
    task = "worker:" field($0, "worker")
    clock[sample, task] = field($0, "clock") + 0
    waited[sample, task] = field($0, "waited") + 0
    if (sample) { behind[task] = field($0, "behind"); seen[task] = field($0, "seen") }
}
/^"unanswered":/ && sample { unanswered = field($0, "unanswered") }

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
