/* SPDX-License-Identifier: Apache-2.0 */
#include "show/shards.h"

#include <inttypes.h>
#include <string.h>

#include "show/columns.h"
#include "show/show.h"

enum cell_form {
    CELL_TASK,
    CELL_TEXT,
    CELL_INT,
    CELL_WORKER,
    CELL_SECONDS,
    CELL_BYTES,
    CELL_REASON
};

struct cell {
    const char *head;
    enum cell_form form;
    const char *field;
};

#define CELLS_MAX 12

struct shard_view {
    const char *name, *verb;
    const char *rows; /* the field that is an array of rows; NULL: the reply is the row */
    bool lines;       /* "ps:0 pid=4120 step=388" instead of columns */
    struct cell cells[CELLS_MAX];
};

static const struct shard_view views[] = {
    {"list",
     "list",
     "variables",
     false,
     {{"TASK", CELL_TASK, ""},
      {"CONTAINER", CELL_TEXT, "container"},
      {"NAME", CELL_TEXT, "name"},
      {"TYPE", CELL_TEXT, "type"},
      {"UPDATES", CELL_INT, "updates"}}},
    {"key",
     "list",
     "variables",
     false,
     {{"TASK", CELL_TASK, ""},
      {"NAME", CELL_TEXT, "name"},
      {"UPDATES", CELL_INT, "updates"},
      {"SIZE", CELL_BYTES, "bytes"}}},
    {"worker",
     "stats",
     "workers",
     false,
     {{"WORKER", CELL_WORKER, "worker"},
      {"CLOCK", CELL_INT, "clock"},
      {"BEHIND", CELL_INT, "behind"},
      {"WAITED", CELL_SECONDS, "waited"},
      {"PUSHED", CELL_INT, "pushed"},
      {"LATE", CELL_INT, "late"},
      {"DROPPED", CELL_INT, "dropped"},
      {"DUPLICATE", CELL_INT, "duplicate"},
      {"SEEN", CELL_SECONDS, "seen"}}},
    {"peer",
     "stats",
     "values",
     false,
     {{"TASK", CELL_TASK, ""},
      {"PEER", CELL_TEXT, "peer"},
      {"GOT", CELL_BYTES, "got"},
      {"SENT", CELL_BYTES, "sent"}}},
    {"resource",
     "stats",
     "resources",
     false,
     {{"TASK", CELL_TASK, ""},
      {"CONTAINER", CELL_TEXT, "container"},
      {"NAME", CELL_TEXT, "name"},
      {"ITEMS", CELL_INT, "items"},
      {"SIZE", CELL_BYTES, "bytes"},
      {"IS", CELL_TEXT, "is"}}},
    {"shard",
     "stats",
     NULL,
     false,
     {{"TASK", CELL_TASK, ""},
      {"UP", CELL_SECONDS, "seconds"},
      {"STILL", CELL_SECONDS, "still"},
      {"LINKS", CELL_INT, "links"},
      {"IN", CELL_BYTES, "in"},
      {"OUT", CELL_BYTES, "out"},
      {"STAGED", CELL_INT, "staged"},
      {"HELD", CELL_BYTES, "staged_bytes"},
      {"REFUSED", CELL_INT, "refused"},
      {"SAVES", CELL_INT, "saves"},
      {"FAILED", CELL_INT, "saves_failed"}}},
    {"status",
     "status",
     NULL,
     true,
     {{"", CELL_TASK, ""},
      {"pid", CELL_INT, "pid"},
      {"incarnation", CELL_INT, "incarnation"},
      {"up", CELL_SECONDS, "seconds"},
      {"still", CELL_SECONDS, "still"},
      {"step", CELL_INT, "version"},
      {"workers", CELL_INT, "workers"},
      {"saved", CELL_INT, "saved"},
      {"failed", CELL_REASON, "failed"}}},
};

const struct shard_view *shard_view_find(const char *name)
{
    const size_t n = sizeof views / sizeof *views;
    size_t i = names_find(views, n, name);
    return i < n ? &views[i] : NULL;
}

const char *shard_view_verb(const struct shard_view *view)
{
    return view->verb;
}

/* ---- rows ---- */

static void add_cells(const struct shard_view *view, const char *task, const msgpack_object *row,
                      struct str *rows)
{
    for (const struct cell *cell = view->cells; cell->head; cell++) {
        if (cell->form == CELL_REASON) {
            /* The rest of the line, if there is any. */
            struct arena arena = ARENA_INIT;
            const char *text = "";
            record_get_text(row, cell->field, &arena, &text);
            if (*text)
                str_printf(rows, " %s=%s", cell->head,
                           str_is_printable(text, strlen(text)) ? text : "?");
            arena_release(&arena);
            continue;
        }
        if (view->lines && cell->form != CELL_TASK)
            str_printf(rows, " %s=", cell->head);
        struct arena arena = ARENA_INIT;
        const char *text = "-";
        if (cell->form == CELL_TASK) {
            str_append(rows, task);
        } else if (cell->form == CELL_TEXT) {
            record_get_text(row, cell->field, &arena, &text);
            str_append(rows, str_is_printable(text, strlen(text)) ? text : "?");
        } else {
            /* A negative number stands for "not yet". */
            int64_t whole;
            double value;
            if (cell->form == CELL_SECONDS && record_get_float(row, cell->field, &value))
                str_printf(rows, "%.1fs", value);
            else if (!record_get_int(row, cell->field, &whole) || whole < 0)
                str_append(rows, "-");
            else if (cell->form == CELL_BYTES)
                str_append(rows, show_bytes(whole).s);
            else
                str_printf(rows, "%s%" PRId64, cell->form == CELL_WORKER ? "worker:" : "", whole);
        }
        arena_release(&arena);
        if (!view->lines)
            str_append_char(rows, 0);
    }
    if (view->lines)
        str_append_char(rows, '\n');
}

void shard_view_add(const struct shard_view *view, bool json, const char *task,
                    const msgpack_object *reply, struct str *rows)
{
    const msgpack_object *all = view->rows ? record_field(reply, view->rows) : reply;
    bool is_array = all && all->type == MSGPACK_OBJECT_ARRAY;
    uint32_t n = is_array ? all->via.array.size : all == reply;
    for (uint32_t i = 0; i < n; i++) {
        const msgpack_object *row = is_array ? &all->via.array.ptr[i] : all;
        if (row->type != MSGPACK_OBJECT_MAP)
            continue;
        if (json) {
            /* {"task":"ps:0", then the row's fields, except those of the reply itself. */
            str_append(rows, "{\"task\":");
            show_json_text(rows, task, strlen(task));
            for (uint32_t j = 0; j < row->via.map.size; j++) {
                const msgpack_object_kv *field = &row->via.map.ptr[j];
                const msgpack_object_str *key = &field->key.via.str;
                static const char *const of_replies[] = {"kind", "id",      "code",
                                                         "sum",  "tensors", "task"};
                bool skip = field->key.type != MSGPACK_OBJECT_STR;
                for (size_t k = 0;
                     !skip && row == reply && k < sizeof of_replies / sizeof *of_replies; k++)
                    skip = strlen(of_replies[k]) == key->size &&
                           !memcmp(of_replies[k], key->ptr, key->size);
                if (skip)
                    continue;
                str_append_char(rows, ',');
                show_json_text(rows, key->ptr, key->size);
                str_append_char(rows, ':');
                show_json_value(rows, &field->val);
            }
            str_append(rows, "}\n");
        } else {
            add_cells(view, task, row, rows);
        }
    }
}

void shard_view_print(const struct shard_view *view, const struct str *rows, struct str *out)
{
    struct columns columns = {0};
    if (view->lines) {
        str_append(out, str_text(rows));
        return;
    }
    for (const struct cell *cell = view->cells; cell->head; cell++, columns.n++)
        columns_add(&columns, "%s", cell->head);
    str_append_bytes(&columns.cells, str_text(rows), rows->n);
    columns_print(&columns, out);
}
