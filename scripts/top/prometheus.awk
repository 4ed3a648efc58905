# SPDX-License-Identifier: Apache-2.0
# Prints a sample (sample.awk) in Prometheus' text format. Names of counters end in _total; rate()
# gives their speed.

function text(raw) {
    gsub(/\\/, "\\\\&", raw)
    gsub(/"/, "\\\"", raw)
    gsub(/\n/, "\\n", raw)
    return raw
}

function metric(name, help) {
    printf "# HELP %s %s\n# TYPE %s %s\n", name, help, name,
        name ~ /_total$/ ? "counter" : "gauge"
}

function value(name, labels, is) {
    if (is != "") printf "%s{job_dir=\"%s\"%s} %.15g\n", name, text(ENVIRON["TF_JOB"]), labels, is
}

# Prints a row for each task that has the figure.
function tasks_have(name, help, array, key,    i) {
    metric(name, help)
    for (i = 1; i <= n_tasks; i++)
        value(name, ",task=\"" tasks[i] "\"",
            key == "" ? array[tasks[i]] : ((1, tasks[i]) in array) ? array[1, tasks[i]] : "")
}

END {
    for (task in state_of) ready[task] = (state_of[task] == "ready") + 0
    metric("tf_job_time_seconds", "When this was asked, since 1970.")
    value("tf_job_time_seconds", "", sprintf("%.3f", time[1]))
    metric("tf_job_running", "Whether it runs.")
    value("tf_job_running", "", (state != "over") + 0)
    metric("tf_job_step", "The step that it has come to.")
    value("tf_job_step", "", step)
    metric("tf_job_restarts_total", "Tasks that were started again.")
    value("tf_job_restarts_total", "", restarts)
    metric("tf_job_saves_total", "Checkpoints that shards have made.")
    value("tf_job_saves_total", "", unanswered == "" ? saves + 0 : "")
    metric("tf_job_saves_failed_total", "Checkpoints that could not be made.")
    value("tf_job_saves_failed_total", "", unanswered == "" ? failed + 0 : "")
    metric("tf_job_answered", "Whether the shards have answered.")
    value("tf_job_answered", "", (unanswered == "") + 0)
    tasks_have("tf_task_ready", "Whether it works.", ready)
    tasks_have("tf_task_restarts_total", "How often it was started again.", restarts_of)
    tasks_have("tf_task_in_bytes_total", "Bytes that have come to it.", came, 1)
    tasks_have("tf_task_out_bytes_total", "Bytes that have gone from it.", went, 1)
    tasks_have("tf_worker_clock", "Its steps that were counted.", clock, 1)
    tasks_have("tf_worker_behind", "Clocks behind the first.", behind)
    tasks_have("tf_worker_waited_seconds_total", "How long it has waited for others.", waited, 1)
}
