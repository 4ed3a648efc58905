/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/session/feeding.h"

#include <inttypes.h>

int feeding_lacks(const struct driver *driver, const struct feeds *feeds, struct error *err)
{
    struct str needs = STR_INIT;
    struct node_list all = {0};
    size_t missing = 0;
    while (missing + 1 < driver->needs.n && feeds_has(feeds, driver->needs.items[missing]))
        missing++;
    request_needs(&driver->request, NULL, 0, &all);
    request_print_needs(&needs, driver->graph, &all);
    int code = error_set(err, ERR_NOINPUT, "%s: %s: not fed; %s %s needs %s", driver->name,
                         node_text(graph_node(driver->graph, driver->needs.items[missing])),
                         driver->option, driver->what, str_text(&needs));
    str_release(&needs);
    vec_release(&all);
    return code;
}

static int take_record(const struct driver *driver, const struct step_feeding *feeding,
                       struct error *err)
{
    const struct record *record = feeding->record;
    const char *from = stream_reader_name(driver->feed_reader);
    if (record->kind != RECORD_FEED && record->kind != RECORD_FETCH &&
        record->kind != RECORD_TENSOR)
        return error_set(err, ERR_DATA, "%s: a %s record where feeds are expected", from,
                         record_kind_name(record->kind));
    const char *again = feeds_started(feeding->feeds) ? feeds_repeated(feeding->feeds, record) : 0;
    if (again) { /* the next step's, as it seems: what this one lacks is what is wrong */
        feeding_lacks(driver, feeding->feeds, err);
        return error_prefix(err, "%s: step %" PRId64 ": '%s' comes again: ", from, feeding->step,
                            again);
    }
    if (feeds_add_record(feeding->feeds, record, err))
        return error_prefix(err, "%s: step %" PRId64 ": ", from, feeding->step);
    return 0;
}

int feeding_read(const struct driver *driver, const struct step_feeding *feeding, bool *more,
                 struct error *err)
{
    do {
        int code = stream_read(driver->feed_reader, feeding->record, more, err);
        if (code)
            return code;
        if (!*more) {
            bool enough = !feeds_started(feeding->feeds) && (feeding->may_end || !driver->needs.n);
            if (enough)
                return 0;
            feeding_lacks(driver, feeding->feeds, err);
            return error_prefix(err, "%s: %s: ", stream_reader_name(driver->feed_reader),
                                feeds_started(feeding->feeds) ? "ends in a step"
                                                              : "no record is left");
        }
        if ((code = take_record(driver, feeding, err)))
            return code;
    } while (!feeds_complete(feeding->feeds, &driver->needs));
    return 0;
}
