/* SPDX-License-Identifier: Apache-2.0
 *
 * Which part of a data set a row is in, for training, validation and test, or which of K folds. It
 * follows from the name of the split and the rows up to this one alone, so that a row stays in its
 * part when more rows come, and is in the same one in a stream or a shard.
 *
 * Rows are dealt in permuted blocks, as patients are in trials (Zelen, "The randomization and
 * stratification of patients to clinical trials", 1974): of 70/15/15 each 20 rows have 14, 3 and 3,
 * in an order that is drawn from the name and the number of the block. With strata each value has
 * blocks of its own, so that the shares of a value are right within one block. Groups are drawn
 * whole, by their text: the shares of the rows are then what chance makes of them.
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
    int64_t shares[SPLIT_PARTS_MAX]; /* of the parts, without a common divisor */
    int n;
    int64_t block; /* sum of the shares */
    int wanted;    /* the part that is taken, or, with `others`, all but this one */
    bool others;
    const char *name; /* what the order is drawn from */
    bool by_group;    /* rows of one value are in one part; else each value has blocks of its own */
    const char *where; /* the column of the values; NULL: there are none */
};

/* "70/15/15:NAME" and one of train, valid and test; of two shares there is no valid. Without :NAME
 * the name is empty. ERR_USAGE. */
int split_rule_parse(struct split_rule *rule, const char *text, const char *part,
                     struct error *err);

/* "I/K:NAME", I from 0: valid is fold I, train are the others. ERR_USAGE. */
int split_rule_parse_fold(struct split_rule *rule, const char *text, const char *part,
                          struct error *err);

/* The rows that are fed: those in both. */
struct row_choice {
    const struct ranges *ranges;
    const struct split_rule *split; /* NULL: all */
};

struct split;
struct split *split_new(const struct split_rule *rule); /* borrowed */
void split_free(struct split *split);                   /* NULL is harmless */

/* Returns whether the next row is taken; `value` is its value, or "" if the rule has no column of
 * them. */
bool split_takes(struct split *split, const char *value, size_t n);

#endif
