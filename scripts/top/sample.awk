# SPDX-License-Identifier: Apache-2.0
# Reads two samples of a job, the last (which may be empty) and the current one. Each is the time,
# then objects of tf-supervise --status and tf-ps stats --json; split at each brace they are flat.
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
    saves += field($0, "saves") * sample
    failed += field($0, "saves_failed") * sample
    if (sample && field($0, "saves_failed") > 0) unsaved[shard] = field($0, "failed_why")
}
# Bytes that a shard received from a task were sent by that task.
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
