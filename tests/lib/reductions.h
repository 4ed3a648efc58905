/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of all members of a collective, and their expected results.
 */
#ifndef TF_TESTS_REDUCTIONS_H
#define TF_TESTS_REDUCTIONS_H

#include <math.h>

#include "lib/combine.h"
#include "lib/members.h"

/* Fills member `rank`'s contribution with values whose sum's bits depend on the order of adding. */
static inline void fill(struct tensor *t, enum dtype type, const struct shape *shape, int rank)
{
    struct error err = ERROR_INIT;
    must(tensor_alloc(t, type, shape, &err), &err);
    for (int64_t i = 0; i < tensor_count(t); i++) {
        if (dtype_is_floating(type))
            tensor_set_float64(t, i, sin((double)(i % 1000 * 7 + rank * 13)) * pow(10, rank));
        else
            tensor_set_int64(t, i, i * 3 + rank * 1000003);
    }
}

/* Lets all members call; each must get the result of collective_combine, bit for bit. */
static inline void check_call(struct members *all, const struct collective_key *key,
                              struct tensor (*values)[8], const enum collective_kind *kinds, int n)
{
    struct reply replies[MEMBERS_MAX];
    for (int k = 0; k < all->n; k++) {
        struct collective_call call = {*key, values[k], kinds, n, .yields = false};
        member_call(all, k, &call, &replies[k]);
    }
    for (int i = 0; i < n; i++) {
        struct error err = ERROR_INIT;
        struct tensor expected = TENSOR_INIT;
        const struct tensor *each[MEMBERS_MAX];
        for (int k = 0; k < all->n; k++)
            each[k] = &values[k][i];
        must(collective_combine(kinds[i], each, all->n, &expected, &err), &err);
        for (int k = 0; k < all->n; k++) {
            reply_wait(&replies[k]);
            must(replies[k].err.code, &replies[k].err);
            assert_int_equal(replies[k].members, all->n);
            assert_true(tensor_equal(&replies[k].results[i], &expected));
        }
        tensor_release(&expected);
    }
    for (int k = 0; k < all->n; k++)
        reply_release(&replies[k]);
}

static inline void release_all(struct members *all, struct tensor (*values)[8], int n)
{
    for (int k = 0; k < all->n; k++)
        for (int i = 0; i < n; i++)
            tensor_release(&values[k][i]);
}

#endif
