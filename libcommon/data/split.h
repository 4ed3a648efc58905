/* SPDX-License-Identifier: Apache-2.0
 *
 * Assigns each row of a data set to a part, for training, validation and test, or to one of K
 * folds. The part depends only on the split's name and on the rows up to this one, so that a row
 * keeps its part when rows are added, and has the same one in a stream or a shard.
 *
 * Rows are dealt in permuted blocks, as patients are in trials (Zelen, "The randomization and
 * stratification of patients to clinical trials", 1974): with 70/15/15 each 20 rows have 14, 3 and
 * 3, in an order drawn from the name and the number of the block. With strata each value has its
 * own blocks, so that the shares of each value are right to within one block. Groups are assigned
 * as a whole, by their text: the shares of rows are then only right on average.
 *
 * Not thread-safe.
 */
#ifndef TF_DATA_SPLIT_H
#define TF_DATA_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "data/ranges.h"

#define SPLIT_PARTS_MAX 1024
#define SPLIT_BLOCK_MAX 10000 /* rows */

struct split_rule {
    int64_t shares[SPLIT_PARTS_MAX]; /* of the parts, divided by their common divisor */
    int n;
    int64_t block; /* sum of the shares */
    int wanted;    /* the part to take or, with `others`, the only one not to take */
    bool others;
    const char *name;  /* seeds the order */
    bool by_group;     /* rows of one value are in one part; else each value has own blocks */
    const char *where; /* the column of the values; NULL: none */
};

/* Parses "70/15/15:NAME" and one of train, valid and test; with two shares there is no valid.
 * Without :NAME the name is empty. ERR_USAGE. */
int split_rule_parse(struct split_rule *rule, const char *text, const char *part,
                     struct error *err);

/* Parses "I/K:NAME", I from 0: valid is fold I, train all others. ERR_USAGE. */
int split_rule_parse_fold(struct split_rule *rule, const char *text, const char *part,
                          struct error *err);

/* Selects the rows to feed: those in both. */
struct row_choice {
    const struct ranges *ranges;
    const struct split_rule *split; /* NULL: all */
};

struct split;
struct split *split_new(const struct split_rule *rule); /* borrowed */
void split_free(struct split *split);                   /* NULL is harmless */

/* Returns whether to take the next row; `value` is its value, or "" if the rule has no column for
 * values. */
bool split_takes(struct split *split, const char *value, size_t n);

#endif
