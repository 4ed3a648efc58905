/* SPDX-License-Identifier: Apache-2.0
 *
 * The pipeline: rows of a table, or rows as they arrive, become numbered batches. Every batch
 * follows from the options and its number alone.
 */
#ifndef TF_DATA_BATCHES_H
#define TF_DATA_BATCHES_H

#include <stdbool.h>

#include "base/error.h"
#include "data/csv_columns.h"
#include "data/table.h"
#include "wire/record.h"

struct batch_options {
    int64_t batch;          /* rows of a batch; the last one of an epoch may have fewer, ... */
    bool drop_remainder;    /* ... or is left out */
    int64_t epochs;         /* 0: without end */
    int64_t steps;          /* at most so many batches; 0: no limit */
    int64_t after;          /* batches passed over, counted in `steps` */
    bool shuffle;           /* anew in each epoch */
    int64_t shuffle_window; /* rows as they arrive are shuffled among so many; 0: not */
    uint64_t seed;
    int64_t shard, n_shards; /* of the rows in an epoch's order every n_shards'th, from shard on */
};

struct batch {
    int64_t step;                  /* from 1 */
    struct feed_position position; /* offset: rows of the epoch and shard up to the batch's end */
    struct named_tensor *tensors;  /* hold their memory; names are borrowed */
    int n;
};

void batch_release(struct batch *batch);

/* A source of batches. One thread at a time. */
struct batches {
    /* The next one, to be released by the caller. *more is false at the end. */
    int (*next)(struct batches *batches, struct batch *batch, bool *more, struct error *err);
    void (*free)(struct batches *batches);
    /* A next() that waits for input ends with ERR_CANCELLED once `fd` can be read. NULL: it never
     * waits. */
    void (*stop_on)(struct batches *batches, int fd);
    int64_t expected; /* how many there will be; -1: unknown */
};

/* Makes batches of a table, which is borrowed. ERR_DATA: no rows, or too few for a batch. */
int batches_of_table(const struct table *table, const struct batch_options *feeding,
                     struct batches **batches, struct error *err);

/* Makes batches of rows as they arrive; one epoch. Takes `columns` over. `n` is the number of
 * columns. */
struct batches *batches_of_rows(struct csv_columns *columns, int n,
                                const struct batch_options *feeding);

/* Up to `depth` batches made ahead by a thread. Takes `batches` over. `wait` is called in the
 * consumer's thread before it waits. */
int batches_prefetch(struct batches *batches, int depth, int (*wait)(void *, struct error *),
                     void *context, struct batches **ahead, struct error *err);

void batches_free(struct batches *batches); /* NULL is harmless */

#endif
