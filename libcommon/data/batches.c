/* SPDX-License-Identifier: Apache-2.0 */
#include "data/batches.h"

#include <inttypes.h>

#include "base/memory.h"
#include "data/rows.h"

void batch_release(struct batch *batch)
{
    for (int i = 0; i < batch->n; i++)
        tensor_release(&batch->tensors[i].tensor);
    mem_free(batch->tensors);
    *batch = (struct batch){0};
}

void batches_free(struct batches *batches)
{
    if (batches)
        batches->free(batches);
}

/* Makes a batch of a table's rows: those of `indices` or, if NULL, n rows from `first` on. */
static int fill(struct batch *batch, const struct table *table, const int64_t *indices,
                int64_t first, int64_t n, struct error *err)
{
    *batch = (struct batch){.n = table->n};
    batch->tensors = mem_array((size_t)table->n, sizeof *batch->tensors);
    int code = 0;
    for (int i = 0; i < table->n && !code; i++) {
        const struct tensor *from = &table->columns[i].tensor;
        struct tensor *to = &batch->tensors[i].tensor;
        batch->tensors[i].name = table->columns[i].name;
        code =
            indices ? rows_gather(from, indices, n, to, err) : rows_slice(from, first, n, to, err);
    }
    if (code)
        batch_release(batch);
    return code;
}

static int too_few(const char *source, int64_t rows, const struct batch_options *f,
                   struct error *err)
{
    return error_set(err, ERR_DATA, "%s: %" PRId64 " rows%s make no batch of %" PRId64, source,
                     rows, f->n_shards > 1 ? " of this shard" : "", f->batch);
}

/* To start after the last of all batches gives nothing, which is no error; any later start is a
 * mistake. */
static int check_after(const char *source, int64_t total, const struct batch_options *f,
                       struct error *err)
{
    if (f->after <= total)
        return 0;
    return error_set(err, ERR_DATA, "%s: --after %" PRId64 ": there are only %" PRId64 " records",
                     source, f->after, total);
}

static int permute(int64_t **order, int64_t rows, uint64_t seed, int64_t epoch, struct error *err)
{
    mem_free(*order);
    *order = rows_permutation(rows, seed, epoch);
    if (!*order)
        return error_set(err, ERR_OS, "no memory for an order of %" PRId64 " rows", rows);
    return 0;
}

/* ---- from a table ---- */

struct table_batches {
    struct batches batches;
    struct table table;
    struct batch_options feeding;
    int64_t rows;      /* of this shard per epoch */
    int64_t per_epoch; /* batches */
    int64_t total;     /* batches; -1: unlimited */
    int64_t step;      /* done */
    int64_t *order, order_epoch;
    int64_t *indices; /* of one batch */
};

static int table_next(struct batches *batches, struct batch *batch, bool *more, struct error *err)
{
    struct table_batches *b = (struct table_batches *)batches;
    const struct batch_options *f = &b->feeding;
    *more = b->total < 0 || b->step < b->total;
    if (!*more)
        return 0;
    int64_t epoch = b->step / b->per_epoch + 1, first = b->step % b->per_epoch * f->batch;
    int64_t n = b->rows - first < f->batch ? b->rows - first : f->batch;
    if (f->shuffle && b->order_epoch != epoch) {
        int code = permute(&b->order, b->table.rows, f->seed, epoch, err);
        if (code)
            return code;
        b->order_epoch = epoch;
    }
    for (int64_t i = 0; b->indices && i < n; i++) {
        int64_t place = f->shard + (first + i) * f->n_shards;
        b->indices[i] = b->order ? b->order[place] : place;
    }
    int code = fill(batch, &b->table, b->indices, first, n, err);
    if (code)
        return code;
    batch->step = ++b->step;
    batch->position = (struct feed_position){b->table.source, epoch, first + n, f->seed};
    return 0;
}

static void table_free(struct batches *batches)
{
    struct table_batches *b = (struct table_batches *)batches;
    table_release(&b->table);
    mem_free(b->order);
    mem_free(b->indices);
    mem_free(b);
}

int batches_of_table(struct table *table, const struct batch_options *f, struct batches **batches,
                     struct error *err)
{
    int64_t rows = f->shard >= table->rows ? 0 : (table->rows - f->shard - 1) / f->n_shards + 1;
    int64_t per_epoch = rows / f->batch + (!f->drop_remainder && rows % f->batch != 0);
    int64_t total = -1;
    if (f->epochs && __builtin_mul_overflow(per_epoch, f->epochs, &total))
        total = INT64_MAX;
    if (f->steps && (total < 0 || f->steps < total))
        total = f->steps;
    if (per_epoch == 0)
        too_few(table->source, rows, f, err);
    else if (total >= 0)
        check_after(table->source, total, f, err);
    if (err->code) {
        table_release(table);
        return err->code;
    }
    struct table_batches *b = mem_alloc(sizeof *b);
    b->batches = (struct batches){.next = table_next, .free = table_free, .expected = -1};
    b->table = *table;
    b->feeding = *f;
    b->rows = rows;
    b->per_epoch = per_epoch;
    b->total = total;
    b->step = f->after;
    if (b->total >= 0)
        b->batches.expected = b->total > f->after ? b->total - f->after : 0;
    if (f->shuffle || f->n_shards > 1) {
        b->indices = mem_try((size_t)(rows < f->batch ? rows : f->batch) * sizeof *b->indices);
        if (!b->indices) {
            table_free(&b->batches);
            return error_set(err, ERR_OS, "no memory for batches of %" PRId64, f->batch);
        }
    }
    *batches = &b->batches;
    return 0;
}

/* ---- from rows as they arrive ---- */

struct row_batches {
    struct batches batches;
    struct csv_columns *source;
    struct batch_options feeding;
    int64_t window;     /* rows read before the first of them is fed: a multiple of the batch */
    struct table table; /* the current window; its rows are the ones collected */
    int64_t done;       /* rows of it already fed */
    int64_t n_windows;
    int64_t *order;
    bool ended;
    int64_t step, offset;
};

static void drop_window(struct row_batches *b)
{
    for (int i = 0; i < b->table.n; i++)
        tensor_release(&b->table.columns[i].tensor);
    b->table.rows = b->done = 0;
}

static int next_window(struct row_batches *b, struct error *err)
{
    const struct batch_options *f = &b->feeding;
    drop_window(b);
    int code = 0;
    bool more = true;
    while (!code && more && csv_columns_rows(b->source) < b->window)
        code = csv_columns_read(b->source, f->shard, f->n_shards, &more, err);
    if (code)
        return code;
    b->ended = !more;
    b->table.rows = csv_columns_rows(b->source);
    if (b->table.rows)
        code = csv_columns_take(b->source, b->table.columns, err);
    if (!code && b->table.rows && f->shuffle_window)
        code = permute(&b->order, b->table.rows, f->seed, ++b->n_windows, err);
    return code;
}

/* The rows, or the requested batches, have ended. */
static int end_of_rows(const struct row_batches *b, struct error *err)
{
    const char *source = row_source_name(csv_columns_source(b->source));
    if (b->step == 0 && b->offset + b->table.rows == 0 && b->feeding.n_shards == 1)
        return error_set(err, ERR_DATA, "%s: no rows", source);
    if (b->step == 0)
        return too_few(source, b->table.rows, &b->feeding, err);
    return check_after(source, b->step, &b->feeding, err);
}

static int row_next(struct batches *batches, struct batch *batch, bool *more, struct error *err)
{
    struct row_batches *b = (struct row_batches *)batches;
    const struct batch_options *f = &b->feeding;
    int code = 0;
    *more = false;
    do {
        if (f->steps && b->step >= f->steps)
            return end_of_rows(b, err);
        if (b->done == b->table.rows && !b->ended && (code = next_window(b, err)))
            return code;
        int64_t n = b->table.rows - b->done < f->batch ? b->table.rows - b->done : f->batch;
        if (n == 0 || (n < f->batch && f->drop_remainder))
            return end_of_rows(b, err);
        if (++b->step > f->after) {
            code = fill(batch, &b->table, b->order ? b->order + b->done : NULL, b->done, n, err);
            *more = !code;
        }
        b->done += n;
        b->offset += n;
    } while (!code && !*more);
    if (code)
        return code;
    batch->step = b->step;
    batch->position = (struct feed_position){row_source_name(csv_columns_source(b->source)), 1,
                                             b->offset, f->seed};
    return 0;
}

static void row_free(struct batches *batches)
{
    struct row_batches *b = (struct row_batches *)batches;
    drop_window(b);
    csv_columns_free(b->source);
    mem_free(b->table.columns);
    mem_free(b->order);
    mem_free(b);
}

static void row_stop_on(struct batches *batches, int fd)
{
    row_source_stop_on(csv_columns_source(((struct row_batches *)batches)->source), fd);
}

struct batches *batches_of_rows(struct csv_columns *columns, int n, const struct batch_options *f)
{
    struct row_batches *b = mem_alloc(sizeof *b);
    b->batches = (struct batches){
        .next = row_next, .free = row_free, .stop_on = row_stop_on, .expected = -1};
    b->source = columns;
    b->feeding = *f;
    int64_t windows = f->shuffle_window / f->batch + (f->shuffle_window % f->batch != 0);
    b->window = (windows ? windows : 1) * f->batch;
    b->table.n = n;
    b->table.columns = mem_array((size_t)n, sizeof *b->table.columns);
    return &b->batches;
}
