/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/job_table.h"

#include <jansson.h>
#include <string.h>

#include "show/columns.h"

static void print_tasks(json_t *tasks, struct str *out)
{
    struct columns columns = {.n = 5};
    size_t i;
    json_t *task;
    const char *const heads[] = {"TASK", "PID", "STATE", "RESTARTS", "LAST"};
    for (i = 0; i < sizeof heads / sizeof *heads; i++)
        columns_add(&columns, "%s", heads[i]);
    json_array_foreach(tasks, i, task)
    {
        const char *name = "?", *state = "?", *ended = "";
        json_int_t pid = 0, restarts = 0;
        json_unpack(task, "{s:s, s:I, s:s, s:I, s:s}", "task", &name, "pid", &pid, "state", &state,
                    "restarts", &restarts, "ended", &ended);
        columns_add(&columns, "%s", name);
        columns_add(&columns, pid ? "%lld" : "-", (long long)pid);
        columns_add(&columns, "%s", state);
        columns_add(&columns, "%lld", (long long)restarts);
        columns_add(&columns, "%s", *ended ? ended : "-");
    }
    columns_print(&columns, out);
}

void job_table_print(const char *folder, const struct str *state, struct str *out)
{
    json_t *all = json_loads(str_text(state), 0, NULL);
    const char *phase, *why = "", *most = "?";
    json_int_t step = 0, restarts = 0, result = 0;
    json_t *tasks = NULL;
    if (json_unpack(all, "{s:s, s:s, s:I, s:I, s:s, s:I, s:o}", "state", &phase, "why", &why,
                    "step", &step, "restarts", &restarts, "max_restarts", &most, "result", &result,
                    "tasks", &tasks)) {
        str_append(out, str_text(state));
    } else {
        str_printf(out, "job %s: %s%s%s%s, step %lld, %lld of %s restarts", folder, phase,
                   *why ? " (" : "", why, *why ? ")" : "", (long long)step, (long long)restarts,
                   most);
        if (!strcmp(phase, "over") || result)
            str_printf(out, ", exit %lld", (long long)result);
        str_append_char(out, '\n');
        print_tasks(tasks, out);
    }
    json_decref(all);
}
