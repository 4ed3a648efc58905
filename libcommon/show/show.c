/* SPDX-License-Identifier: Apache-2.0 */
#include "show/show.h"

#include <string.h>

typedef int show_function(const struct show *show, const struct record *record, struct error *err);

static show_function *const by_kind[] = {
    [RECORD_GRAPH] = show_graph,   [RECORD_FEED] = show_feed, [RECORD_FETCH] = show_fetch,
    [RECORD_TENSOR] = show_tensor, [RECORD_PLAN] = show_plan, [RECORD_TRACE] = show_trace,
};

int show_record(const struct show *show, const struct record *record, struct error *err)
{
    size_t kind = (size_t)record->kind;
    if (kind >= sizeof by_kind / sizeof *by_kind || !by_kind[kind])
        return error_set(err, ERR_DATA, "%s records are not for showing",
                         record_kind_name(record->kind));
    int code = by_kind[kind](show, record, err);
    if (!code && ferror(show->out))
        return error_set_errno(err, ERR_IO, "writing");
    return code;
}

int show_end(const struct show *show, struct error *err)
{
    struct str text = STR_INIT;
    if (show->costs)
        trace_summary_print_costs(show->trace, &text);
    else if (!show->json)
        trace_summary_print(show->trace, &text);
    fwrite(str_text(&text), 1, text.n, show->out);
    str_release(&text);
    return ferror(show->out) ? error_set_errno(err, ERR_IO, "writing") : 0;
}

bool show_wants(const struct show *show, const char *name)
{
    for (int i = 0; i < show->n_names; i++)
        if (strcmp(show->names[i], name) == 0) {
            if (show->found)
                show->found[i] = true;
            return true;
        }
    return show->n_names == 0;
}
