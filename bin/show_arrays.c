/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/show_arrays.h"

#include <string.h>

#include "base/memory.h"
#include "wire/npy.h"
#include "wire/npz.h"

/* ---- reading ---- */

static bool begins(const char *start, size_t n, const char *magic)
{
    return n >= strlen(magic) && !memcmp(start, magic, strlen(magic));
}

static void add_tensor(struct record *record, const char *name, struct tensor t)
{
    record->tensors[record->n_tensors++] =
        (struct named_tensor){arena_strdup(&record->arena, name), t};
}

static int read_npz(struct tensor_source *source, const struct str *bytes, const char *name,
                    struct record *record, struct error *err)
{
    struct npz npz = {0};
    if (npz_open_memory(bytes->data, bytes->n, name, &npz, err))
        return err->code;
    if (npz.n == 0)
        error_set(err, ERR_DATA, "%s: no arrays", name);
    int n = source->n_wanted ? source->n_wanted : npz.n;
    record->tensors = mem_array((size_t)n + 1, sizeof *record->tensors);
    record->tensors_capacity = n + 1;
    for (int i = 0; i < n && !err->code; i++) {
        struct error own = ERROR_INIT;
        int place = i;
        if (source->n_wanted && npz_find(&npz, source->wanted[i], &place, err))
            break;
        struct tensor t = TENSOR_INIT;
        if (!npz_read(&npz, place, &t, &own)) {
            add_tensor(record, npz_name(&npz, place), t);
        } else if (source->n_wanted) {
            *err = own;
        } else if (!source->unread.code) {
            source->unread = own;
        }
    }
    npz_close(&npz);
    return err->code;
}

int tensor_source_begin(struct tensor_source *source, struct record *record, struct error *err)
{
    char start[8];
    size_t n;
    struct stream_reader *reader = source->reader;
    const char *name = stream_reader_name(reader);
    source->unread = ERROR_INIT;
    source->is_begun = true;
    if (stream_reader_peek(reader, start, sizeof start, &n, err))
        return err->code;
    bool is_npz = begins(start, n, "PK\x03\x04") || begins(start, n, "PK\x05\x06");
    source->are_arrays = is_npz || begins(start, n, "\x93NUMPY") ||
                         (begins(start, n, "\x1f\x8b") && str_ends(name, ".npy.gz"));
    if (!source->are_arrays)
        return 0;
    struct str bytes = STR_INIT;
    record->kind = RECORD_TENSOR;
    int code = stream_reader_take_rest(reader, &bytes, err);
    struct tensor one = TENSOR_INIT;
    if (!code && is_npz) {
        code = read_npz(source, &bytes, name, record, err);
    } else if (!code && !(code = npy_read_memory(bytes.data, bytes.n, name, &one, err))) {
        record->tensors = mem_array(1, sizeof *record->tensors);
        record->tensors_capacity = 1;
        add_tensor(record, "", one);
    }
    str_release(&bytes);
    return code;
}

int tensor_source_read(struct tensor_source *source, struct record *record, bool *more,
                       struct error *err)
{
    if (!source->is_begun && tensor_source_begin(source, record, err))
        return err->code;
    if (!source->are_arrays)
        return stream_read(source->reader, record, more, err);
    *more = !source->is_read;
    source->is_read = true;
    return 0;
}

/* ---- gathering ---- */

static int gather_part(struct array_gather *g, enum record_kind kind,
                       const struct named_tensor *named, struct error *err)
{
    struct tensor part = TENSOR_INIT;
    const struct tensor *t = &named->tensor;
    if (g->parts.n && kind == RECORD_TENSOR)
        return error_set(err, ERR_DATA, "%s: there is more than one tensor '%s'", g->source,
                         named->name);
    const struct tensor *first = g->parts.n ? &g->parts.items[0] : t;
    bool fits = first->type == t->type && first->shape.rank == t->shape.rank;
    for (int i = 1; fits && i < t->shape.rank; i++)
        fits = first->shape.dims[i] == t->shape.dims[i];
    if (!fits) {
        struct str text = STR_INIT;
        shape_print_typed(&text, first->type, &first->shape);
        error_set(err, ERR_DATA,
                  "%s: record %zu: '%s' is %s, but in the first one %s: these are no rows of one "
                  "array",
                  g->source, g->parts.n + 1, named->name, shape_text_typed(t->type, &t->shape),
                  str_text(&text));
        str_release(&text);
        return err->code;
    }
    tensor_share(&part, t);
    vec_push(&g->parts, part);
    return 0;
}

int array_gather_add(struct array_gather *g, const struct record *record, struct error *err)
{
    int code = 0;
    for (int i = 0; i < record->n_tensors && !code; i++) {
        const struct named_tensor *named = &record->tensors[i];
        if (vec_find(&g->names, named->name) == g->names.n)
            vec_push(&g->names, arena_strdup(&g->arena, named->name));
        if (g->wanted ? !strcmp(g->wanted, named->name) : g->names.n == 1)
            code = gather_part(g, record->kind, named, err);
    }
    return code;
}

static struct tensor join(const struct array_gather *g, struct error *err)
{
    const struct tensor *first = &g->parts.items[0];
    struct shape shape = first->shape.rank ? first->shape : shape_vector(0);
    struct tensor all = TENSOR_INIT;
    shape.dims[0] = 0;
    for (size_t i = 0; i < g->parts.n; i++)
        shape.dims[0] += first->shape.rank ? g->parts.items[i].shape.dims[0] : 1;
    if (tensor_alloc(&all, first->type, &shape, err))
        return all;
    char *to = all.data;
    for (size_t i = 0; i < g->parts.n; i++) {
        size_t bytes = tensor_bytes(&g->parts.items[i]);
        if (bytes)
            memcpy(to, g->parts.items[i].data, bytes);
        to += bytes;
    }
    return all;
}

int array_gather_write(struct array_gather *g, FILE *out, struct error *err)
{
    struct str names = STR_INIT;
    /* "x, y" */
    for (size_t i = 0; i < g->names.n; i++)
        str_printf(&names, "%s%s", i ? ", " : "", g->names.items[i]);
    if (!g->names.n)
        error_set(err, ERR_DATA, "%s: no tensor", g->source);
    else if (!g->wanted && g->names.n > 1)
        error_set(err, ERR_USAGE, "%s: --npy writes one tensor: name one of %s", g->source,
                  str_text(&names));
    else if (!g->parts.n)
        error_set(err, ERR_DATA, "%s: no tensor '%s' (there is: %s)", g->source, g->wanted,
                  str_text(&names));
    str_release(&names);
    if (err->code)
        return err->code;
    if (g->parts.n == 1)
        return npy_write(out, &g->parts.items[0], err);
    if (!dtype_npy(g->parts.items[0].type))
        return error_set(err, ERR_DATA, ".npy has no type %s", dtype_name(g->parts.items[0].type));
    struct tensor all = join(g, err);
    if (!err->code)
        npy_write(out, &all, err);
    tensor_release(&all);
    return err->code;
}

void array_gather_release(struct array_gather *g)
{
    for (size_t i = 0; i < g->parts.n; i++)
        tensor_release(&g->parts.items[i]);
    vec_release(&g->parts);
    vec_release(&g->names);
    arena_release(&g->arena);
}
