/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/variables/slices.h"

#include <string.h>

/* Rows of a whole: what is wanted, or what an entry has. */
struct row_span {
    const char *of;
    int64_t whole, first, n;
};

static struct row_span rows_of(const char *name, const struct shape *shape,
                               const struct variable_slice *slice)
{
    int64_t n = shape->rank ? shape->dims[0] : 0;
    return slice->of ? (struct row_span){slice->of, slice->rows, slice->first, n}
                     : (struct row_span){name, n, 0, n};
}

/* The rows that both have. */
static int64_t common(const struct row_span *a, const struct row_span *b, int64_t *first)
{
    int64_t end = a->first + a->n < b->first + b->n ? a->first + a->n : b->first + b->n;
    *first = a->first > b->first ? a->first : b->first;
    return end > *first ? end - *first : 0;
}

static bool same_slice(const struct variable_slice *a, const struct variable_slice *b)
{
    return !a->of == !b->of &&
           (!a->of || (!strcmp(a->of, b->of) && a->rows == b->rows && a->first == b->first));
}

static int misfit(const struct checkpoint *c, const struct variable *like,
                  const struct manifest_tensor *t, struct error *err)
{
    return error_set(err, ERR_DATA, "%s: variable '%s' is %s there, but %s in the graph", c->name,
                     t->name, shape_text_typed(t->type, &t->shape),
                     shape_text_typed(like->type, &like->shape));
}

/* The entry that is the variable as it is; -1: there is none, or it was cut another way. */
static int find_same(const struct checkpoint *c, const struct variable *like, struct error *err)
{
    int i = checkpoint_find(c, like->container, like->name);
    const struct manifest_tensor *t = i < 0 ? NULL : c->entries.items[i].tensor;
    if (!t || !same_slice(&t->slice, &like->slice) ||
        (t->slice.of && t->shape.dims[0] != like->shape.dims[0]))
        return -1;
    if (t->type == like->type && shape_compatible(&t->shape, &like->shape))
        return i;
    misfit(c, like, t, err);
    return -1;
}

static bool rows_fit(const struct manifest_tensor *t, const struct variable *like)
{
    bool fits = t->type == like->type && t->type != STRING && t->shape.rank == like->shape.rank;
    for (int i = 1; fits && i < t->shape.rank; i++)
        fits = like->shape.dims[i] < 0 || t->shape.dims[i] == like->shape.dims[i];
    return fits;
}

/* What is wanted of the whole: all of it, where the graph leaves the rows open. */
static struct row_span wanted_of(const struct checkpoint *c, const struct variable *like)
{
    struct row_span wanted = rows_of(like->name, &like->shape, &like->slice);
    for (size_t i = 0; wanted.n < 0 && i < c->entries.n; i++) {
        const struct manifest_tensor *t = c->entries.items[i].tensor;
        if (t->slice.of && !strcmp(t->slice.of, wanted.of))
            wanted.n = wanted.whole = t->slice.rows;
    }
    return wanted;
}

/* Whether entry i has rows of what is wanted. */
static bool has_rows(const struct checkpoint *c, size_t i, const struct variable *like,
                     const struct row_span *wanted, struct row_span *rows)
{
    const struct manifest_tensor *t = c->entries.items[i].tensor;
    int64_t first;
    *rows = rows_of(t->name, &t->shape, &t->slice);
    return t->shape.rank > 0 && like->shape.rank > 0 && !strcmp(t->container, like->container) &&
           !strcmp(rows->of, wanted->of) && common(rows, wanted, &first);
}

static int check_slices(const struct checkpoint *c, const struct variable *like, struct error *err)
{
    struct row_span wanted = wanted_of(c, like), rows;
    int64_t found = 0, first;
    for (size_t i = 0; i < c->entries.n; i++) {
        if (!has_rows(c, i, like, &wanted, &rows))
            continue;
        if (!rows_fit(c->entries.items[i].tensor, like) || rows.whole != wanted.whole)
            return misfit(c, like, c->entries.items[i].tensor, err);
        found += common(&rows, &wanted, &first);
    }
    if (!found)
        return error_set(err, ERR_NOINPUT, "%s: variable '%s' is not in it", c->name, like->name);
    if (found != wanted.n)
        return error_set(err, ERR_DATA, "%s: variable '%s': %lld of %lld rows are in it", c->name,
                         like->name, (long long)found, (long long)wanted.n);
    return 0;
}

int checkpoint_has_variable(const struct checkpoint *c, const struct variable *like,
                            struct error *err)
{
    error_clear(err);
    return find_same(c, like, err) >= 0 || err->code ? err->code : check_slices(c, like, err);
}

static int copy_rows(struct checkpoint *c, size_t i, const struct row_span *wanted,
                     struct tensor *value, struct error *err)
{
    const struct manifest_tensor *t = c->entries.items[i].tensor;
    struct row_span rows = rows_of(t->name, &t->shape, &t->slice);
    struct tensor part;
    int64_t first, n = common(&rows, wanted, &first);
    if (checkpoint_read(c, (int)i, &part, err))
        return err->code;
    size_t row = tensor_bytes(&part) / (size_t)rows.n;
    memcpy((char *)value->data + (size_t)(first - wanted->first) * row,
           (const char *)part.data + (size_t)(first - rows.first) * row, (size_t)n * row);
    tensor_release(&part);
    return 0;
}

static int read_slices(struct checkpoint *c, const struct variable *like, struct tensor *value,
                       uint64_t *updates, struct error *err)
{
    struct row_span wanted = wanted_of(c, like), rows;
    struct tensor result = TENSOR_INIT;
    for (size_t i = 0; i < c->entries.n && !err->code; i++) {
        const struct manifest_tensor *t = c->entries.items[i].tensor;
        if (!has_rows(c, i, like, &wanted, &rows))
            continue;
        struct shape shape = t->shape;
        shape.dims[0] = wanted.n;
        if ((!result.data && tensor_alloc(&result, t->type, &shape, err)) ||
            copy_rows(c, i, &wanted, &result, err))
            break;
        *updates = t->updates > *updates ? t->updates : *updates;
    }
    if (err->code)
        tensor_release(&result);
    else
        *value = result;
    return err->code;
}

int checkpoint_read_variable(struct checkpoint *c, const struct variable *like,
                             struct tensor *value, uint64_t *updates, struct error *err)
{
    *value = (struct tensor)TENSOR_INIT;
    *updates = 0;
    if (checkpoint_has_variable(c, like, err))
        return err->code;
    int i = find_same(c, like, err);
    if (i < 0)
        return read_slices(c, like, value, updates, err);
    *updates = c->entries.items[i].tensor->updates;
    return checkpoint_read(c, i, value, err);
}
