/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/data_cut.h"

#include <inttypes.h>

#include "data/ranges.h"

struct stream_cutter {
    struct tool *tool;
    struct stream_reader *reader;
    struct ranges steps;
    int64_t before; /* steps of the streams before this one */
    int64_t last;   /* the step last read, counted within its stream */
    int64_t n_cut;
};

static int cut_record(struct stream_cutter *c, struct record *record, struct error *err)
{
    int64_t step = c->last + 1;
    if (record->kind != RECORD_FEED && record->kind != RECORD_FETCH)
        return error_set(err, ERR_DATA, "%s: a %s record where feeds are expected",
                         stream_reader_name(c->reader), record_kind_name(record->kind));
    record_get_int(&record->header, "step", &step);
    if (step < c->last)
        c->before += c->last;
    c->last = step;
    step += c->before;
    if (!ranges_contain(&c->steps, step))
        return 0;
    struct feed_position position;
    bool has_position = record_get_position(record, &record->arena, &position);
    c->n_cut++;
    return stream_write_feed(c->tool->writer, record->kind, step, has_position ? &position : NULL,
                             record->tensors, record->n_tensors, err);
}

int data_cut(struct tool *tool, const char *list, const char *path, struct error *err)
{
    struct stream_cutter c = {.tool = tool};
    if (!ranges_parse(list, &c.steps, err) && !tool_open_writer(tool, -1, err) &&
        !tool_open_reader(tool, path, &c.reader, err)) {
        struct record record = {0};
        bool more = true;
        while (!err->code && more && c.before + c.last <= ranges_last(&c.steps))
            if (!stream_read(c.reader, &record, &more, err) && more)
                cut_record(&c, &record, err);
        record_release(&record);
        if (!err->code && !c.n_cut)
            error_set(err, ERR_DATA, "%s: has no such step; its last is %" PRId64,
                      stream_reader_name(c.reader), c.before + c.last);
        tool_close_reader(c.reader);
    }
    ranges_release(&c.steps);
    return err->code;
}
