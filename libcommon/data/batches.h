/* SPDX-License-Identifier: Apache-2.0
 *
 * The pipeline: rows of a table, or rows as they arrive, become numbered batches. A batch depends
 * only on the options and its number.
 */
#ifndef TF_DATA_BATCHES_H
#define TF_DATA_BATCHES_H

#include <stdbool.h>

#include "base/error.h"
#include "data/csv_columns.h"
#include "data/table.h"
#include "wire/record.h"

struct batch_options {
    int64_t batch;          /* rows per batch; the last one of an epoch may have fewer, ... */
    bool drop_remainder;    /* ... or is dropped */
    int64_t epochs;         /* 0: unlimited */
    int64_t steps;          /* most batches; 0: no limit */
    int64_t after;          /* batches to skip, counted in `steps` */
    bool shuffle;           /* anew for each epoch */
    int64_t shuffle_window; /* arriving rows are shuffled among this many; 0: not shuffled */
    uint64_t seed;
    int64_t shard, n_shards; /* of an epoch's rows in order, every n_shards'th from shard on */
};

struct batch {
    int64_t step;                  /* from 1 */
    struct feed_position position; /* offset: rows of epoch and shard up to the batch's end */
    struct named_tensor *tensors;  /* own their memory; names are borrowed */
    int n;
};

void batch_release(struct batch *batch);

/* A source of batches. One thread at a time. */
struct batches {
    /* Gets the next batch, which the caller releases. *more is false at the end. */
    int (*next)(struct batches *batches, struct batch *batch, bool *more, struct error *err);
    void (*free)(struct batches *batches);
    /* Makes a next() that waits for input fail with ERR_CANCELLED once `fd` is readable. NULL: it
     * never waits. */
    void (*stop_on)(struct batches *batches, int fd);
    int64_t expected; /* number of batches; -1: unknown */
};

/* Makes batches of a table, which they release, as does a failure. ERR_DATA: no rows, or too few
 * for one batch. */
int batches_of_table(struct table *table, const struct batch_options *feeding,
                     struct batches **batches, struct error *err);

/* Makes batches of rows as they arrive, for one epoch. Takes ownership of `columns`, which are `n`
 * columns. */
struct batches *batches_of_rows(struct csv_columns *columns, int n,
                                const struct batch_options *feeding);

/* Makes up to `depth` batches ahead, in a thread. Takes ownership of `batches`. `wait` is called in
 * the consumer's thread before it waits. */
int batches_prefetch(struct batches *batches, int depth, int (*wait)(void *, struct error *),
                     void *context, struct batches **ahead, struct error *err);

void batches_free(struct batches *batches); /* NULL is harmless */

#endif
