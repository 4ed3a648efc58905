/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: a schedule's sum of one element, in float32, by a formula for each kind, without using
 * the schedules' code: the piece it is in, and the order in which the members' values are added.
 */
#ifndef TF_TESTS_LIB_SCHEDULES_H
#define TF_TESTS_LIB_SCHEDULES_H

#include "collective/schedule.h"

struct sum_case {
    enum schedule_kind kind;
    int n; /* members */
    const int *hosts;
    const float *values; /* of the element, by member */
};

static inline float sum_by_rank(const float *values, int n)
{
    float sum = values[0];
    for (int k = 1; k < n; k++)
        sum += values[k];
    return sum;
}

static inline float sum_around(const float *values, int n, int first)
{
    float sum = values[first % n];
    for (int k = 1; k < n; k++)
        sum += values[(first + k) % n];
    return sum;
}

/* Of `size` members from one on, a power of two: each half, then both; but first come those that
 * are next to it. */
static inline float sum_of_tree(const float *values, int n, int from, int size)
{
    float sum = values[from];
    for (int step = 1; step < size && from + step < n; step *= 2)
        sum += sum_of_tree(values, n, from + step, step);
    return sum;
}

/* What comes together at one: of the others those that differ in the bits from `bit` up, largest
 * distance first. */
static inline float sum_of_halves(const float *values, int at, int bit, int power)
{
    if (bit == power)
        return values[at];
    return sum_of_halves(values, at, 2 * bit, power) +
           sum_of_halves(values, at ^ bit, 2 * bit, power);
}

static inline float sum_by_halving(const float *values, int n, int piece)
{
    float folded[SCHEDULE_MEMBERS_MAX];
    int power = 1, pairs;
    while (2 * power <= n)
        power *= 2;
    pairs = n - power;
    for (int k = 0; k < power; k++)
        folded[k] = k < pairs ? values[2 * k] + values[2 * k + 1] : values[k + pairs];
    return sum_of_halves(folded, piece % power, 1, power);
}

static inline int hosts_of(const int *hosts, int n)
{
    int count = 0;
    for (int k = 0; k < n; k++) {
        bool is_new = true;
        for (int j = 0; j < k; j++)
            is_new &= hosts[j] != hosts[k];
        count += is_new;
    }
    return count;
}

/* Sums of hosts, in the order of their first members, around. */
static inline float sum_of_hosts(const float *values, int n, const int *hosts, int piece)
{
    float sums[SCHEDULE_MEMBERS_MAX];
    int n_hosts = 0, seen[SCHEDULE_MEMBERS_MAX];
    for (int k = 0; k < n; k++) {
        int at = 0;
        while (at < n_hosts && seen[at] != hosts[k])
            at++;
        sums[at] = at < n_hosts ? sums[at] + values[k] : values[k];
        seen[at] = hosts[k];
        n_hosts += at == n_hosts;
    }
    return sum_around(sums, n_hosts, piece);
}

/* Returns the number of pieces of a value. */
static inline int sum_pieces(const struct sum_case *c)
{
    int power = 1;
    while (2 * power <= c->n)
        power *= 2;
    return c->kind == SCHEDULE_RING        ? c->n
           : c->kind == SCHEDULE_HALVING   ? power
           : c->kind == SCHEDULE_TWO_LEVEL ? hosts_of(c->hosts, c->n)
                                           : 1;
}

static inline float sum_expected(const struct sum_case *c, int piece)
{
    switch (c->kind) {
    case SCHEDULE_RING:
        return sum_around(c->values, c->n, piece);
    case SCHEDULE_TREE:
        return sum_of_tree(c->values, c->n, 0, SCHEDULE_MEMBERS_MAX);
    case SCHEDULE_HALVING:
        return sum_by_halving(c->values, c->n, piece);
    case SCHEDULE_TWO_LEVEL:
        return sum_of_hosts(c->values, c->n, c->hosts, piece);
    default:
        return sum_by_rank(c->values, c->n);
    }
}

/* Returns the piece of an element of `count`: pieces are equal, the first ones have one more. */
static inline int sum_piece_of(int64_t element, int64_t count, int pieces)
{
    int64_t each = count / pieces, more = count % pieces;
    return element < more * (each + 1) ? (int)(element / (each + 1))
                                       : (int)(more + (element - more * (each + 1)) / each);
}

#endif
