/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "show/columns.h"
#include "show/show.h"

#define N_TITLES 6

static const msgpack_object *array_field(const msgpack_object *map, const char *name,
                                         struct error *err)
{
    const msgpack_object *array = record_field(map, name);
    if (array && array->type == MSGPACK_OBJECT_ARRAY)
        return array;
    error_set(err, ERR_DATA, "plan record without '%s'", name);
    return NULL;
}

/* `plan   train  61 of 87 nodes  x float32[64,64]  y int32[64]  peak 181.0 KiB` */
static int print_head(const struct record *record, struct arena *arena, struct str *out,
                      struct error *err)
{
    const msgpack_object *header = &record->header, *feeds = array_field(header, "feeds", err);
    const char *run = "";
    int64_t nodes = 0, of = 0, peak = 0, regions = 1;
    bool is_static = true;
    if (!feeds)
        return err->code;
    record_get_text(header, "run", arena, &run);
    record_get_int(header, "nodes", &nodes);
    record_get_int(header, "of", &of);
    record_get_int(header, "peak", &peak);
    record_get_int(header, "regions", &regions);
    record_get_bool(header, "static", &is_static);
    str_printf(out, "plan   %s  %" PRId64 " of %" PRId64 " nodes", run, nodes, of);
    for (uint32_t i = 0; i < feeds->via.array.size; i++) {
        const msgpack_object *feed = &feeds->via.array.ptr[i];
        if (feed->type == MSGPACK_OBJECT_STR)
            str_printf(out, "  %.*s", (int)feed->via.str.size, feed->via.str.ptr);
    }
    if (!is_static)
        str_printf(out, "  %" PRId64 " regions", regions);
    str_printf(out, "  peak %.1f KiB\n", (double)peak / 1024);
    return 0;
}

static int print_plan(const struct record *record, struct arena *arena, struct str *out,
                      struct error *err)
{
    static const char *const titles[N_TITLES] = {"ORDER",  "NODE",  "KERNEL",
                                                 "BUFFER", "BYTES", "LIVE"};
    bool is_static = true;
    record_get_bool(&record->header, "static", &is_static);
    struct columns columns = {.n = N_TITLES + !is_static};
    const msgpack_object *items = array_field(&record->header, "items", err);
    if (!items || print_head(record, arena, out, err))
        return err->code;
    for (int i = 0; i < N_TITLES; i++) {
        columns_add(&columns, "%s", titles[i]);
        if (!i && !is_static)
            columns_add(&columns, "REGION");
    }
    for (uint32_t i = 0; i < items->via.array.size; i++) {
        if (items->via.array.ptr[i].type != MSGPACK_OBJECT_MAP)
            continue;
        /* A row of the table. */
        const msgpack_object *item = &items->via.array.ptr[i];
        const char *node = "-";
        int64_t offset = -1, bytes = 0, from = 0, to = 0;
        bool on_host = false;
        record_get_text(item, "node", arena, &node);
        record_get_int(item, "offset", &offset);
        record_get_bool(item, "host", &on_host);
        record_get_int(item, "bytes", &bytes);
        record_get_int(item, "from", &from);
        record_get_int(item, "to", &to);
        columns_add(&columns, "%" PRIu32, i);
        if (columns.n > N_TITLES) {
            /* A node that is in no region runs as soon as its dependencies have. */
            int64_t region = -1;
            record_get_int(item, "region", &region);
            if (region < 0)
                columns_add(&columns, "-");
            else
                columns_add(&columns, "%" PRId64, region);
        }
        columns_add(&columns, "%s", node);
        /* The kernel and, if it stands for several nodes, their ops: K(FusedMatMul+Relu). */
        const msgpack_object *ops = record_field(item, "ops");
        const char *kernel = "-";
        struct str text = STR_INIT;
        record_get_text(item, "kernel", arena, &kernel);
        str_append(&text, kernel);
        for (uint32_t k = 0; ops && ops->type == MSGPACK_OBJECT_ARRAY && k < ops->via.array.size;
             k++) {
            const msgpack_object *op = &ops->via.array.ptr[k];
            if (op->type == MSGPACK_OBJECT_STR)
                str_printf(&text, "%c%.*s", k ? '+' : '(', (int)op->via.str.size, op->via.str.ptr);
        }
        if (text.n > strlen(kernel))
            str_append_char(&text, ')');
        columns_add(&columns, "%s", str_text(&text));
        str_release(&text);
        if (offset < 0)
            columns_add(&columns, "-");
        else
            columns_add(&columns, "%s+%" PRId64, on_host ? "host" : "arena", offset);
        columns_add(&columns, "%" PRId64, bytes);
        if (from < 0) /* it has no result */
            columns_add(&columns, "-");
        else
            columns_add(&columns, "%" PRId64 "-%" PRId64, from, to);
    }
    columns_print(&columns, out);
    return 0;
}

int show_plan(const struct show *show, const struct record *record, struct error *err)
{
    struct str out = STR_INIT;
    struct arena arena = ARENA_INIT;
    int code = 0;
    if (show->json) {
        show_json_value(&out, &record->header);
        str_append_char(&out, '\n');
    } else {
        code = print_plan(record, &arena, &out, err);
    }
    if (!code)
        fwrite(str_text(&out), 1, out.n, show->out);
    arena_release(&arena);
    str_release(&out);
    return code;
}
