/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: the result of a collective of any kind for a member, computed row by row as one would
 * deal cards, without using the collective's code.
 */
#ifndef TF_TESTS_LIB_ROUTES_H
#define TF_TESTS_LIB_ROUTES_H

#include <string.h>

#include "base/memory.h"
#include "exec/step/collective.h"
#include "lib/unit.h"

#define ROUTES_MAX 8

struct routes_case {
    enum collective_kind kind;
    int n;
    int root;                 /* which of the n; -1: there is none */
    bool wants;               /* rows are what members want */
    int64_t rows[ROUTES_MAX]; /* wanted */
    const struct tensor *each[ROUTES_MAX];
};

/* Rows dealt one by one. */
static inline void routes_deal(int64_t rows, int n, int64_t *hands)
{
    memset(hands, 0, (size_t)n * sizeof *hands);
    for (int64_t i = 0; i < rows; i++)
        hands[i % n]++;
}

static inline bool routes_adds(enum collective_kind kind)
{
    return kind == COLLECTIVE_SUM || kind == COLLECTIVE_MEAN || kind == COLLECTIVE_SUM_PART ||
           kind == COLLECTIVE_MEAN_PART;
}

static inline bool routes_divides(enum collective_kind kind)
{
    return kind == COLLECTIVE_MEAN || kind == COLLECTIVE_MEAN_ROWS || kind == COLLECTIVE_MEAN_PART;
}

/* Finds how many of a member's rows each member gets, if rows are parted or gathered. */
static inline void routes_hands(const struct routes_case *c, int from, int64_t *hands)
{
    int64_t rows = c->each[from]->shape.dims[0], other[ROUTES_MAX];
    bool is_part = c->kind == COLLECTIVE_PART || routes_adds(c->kind);
    memset(hands, 0, (size_t)c->n * sizeof *hands);
    if (is_part && c->root >= 0 && c->root != from)
        return;
    if (is_part && !c->wants) {
        routes_deal(rows, c->n, hands);
        return;
    }
    for (int to = 0; to < c->n; to++) {
        if (is_part && c->root < 0 && c->kind == COLLECTIVE_PART) {
            routes_deal(c->rows[to], c->n, other);
            hands[to] = other[from];
        } else if (is_part) {
            hands[to] = c->rows[to];
        } else {
            hands[to] = c->root < 0 || c->root == to ? rows : 0;
        }
    }
}

/* Sets to[i] to the members' elements i, added by rank, and divided by their number for a mean. */
static inline void routes_add(const struct routes_case *c, int64_t i, struct tensor *to, int64_t at)
{
    bool narrow = dtype_bytes(to->type) == 2 || to->type == FLOAT32;
    float single = 0;
    double total = 0;
    int64_t integer = 0;
    for (int k = 0; k < c->n && dtype_is_floating(to->type); k++) {
        double value = tensor_get_float64(c->each[k], i);
        single = k ? single + (float)value : (float)value;
        total = k ? total + value : value;
    }
    if (routes_divides(c->kind)) {
        single /= (float)c->n;
        total /= c->n;
    }
    for (int k = 0; k < c->n && !dtype_is_floating(to->type); k++)
        integer += tensor_get_int64(c->each[k], i);
    if (dtype_is_floating(to->type))
        tensor_set_float64(to, at, narrow ? (double)single : total);
    else
        tensor_set_int64(to, at, integer);
}

static inline void routes_place(const struct routes_case *c, const struct tensor *from, int64_t i,
                                struct tensor *to, int64_t at)
{
    size_t bytes = dtype_bytes(from->type);
    float single = dtype_is_floating(from->type) ? (float)tensor_get_float64(from, i) : 0;
    if (!routes_divides(c->kind))
        memcpy((char *)to->data + (size_t)at * bytes, (char *)from->data + (size_t)i * bytes,
               bytes);
    else if (from->type == FLOAT64)
        tensor_set_float64(to, at, tensor_get_float64(from, i) / c->n);
    else
        tensor_set_float64(to, at, (double)(single / (float)c->n));
}

static inline void routes_alloc(struct tensor *t, enum dtype type, const struct shape *shape)
{
    struct error err = ERROR_INIT;
    if (tensor_alloc(t, type, shape, &err))
        fail_msg("%s", err.text);
    memset(t->data, 0, tensor_bytes(t));
}

/* Computes the result of a kind that adds. */
static inline void routes_sum(const struct routes_case *c, int member, struct tensor *result)
{
    struct shape shape = c->each[member]->shape;
    bool is_part = c->kind == COLLECTIVE_SUM_PART || c->kind == COLLECTIVE_MEAN_PART;
    int64_t hands[ROUTES_MAX], first = 0, count = tensor_count(c->each[0]);
    if (is_part) {
        int64_t unit = shape.dims[0] ? count / shape.dims[0] : 0;
        routes_hands(c, 0, hands);
        for (int k = 0; k < member; k++)
            first += hands[k] * unit;
        shape.dims[0] = hands[member];
        count = hands[member] * unit;
    }
    routes_alloc(result, c->each[0]->type, &shape);
    for (int64_t i = 0; i < count && (is_part || c->root < 0 || c->root == member); i++)
        routes_add(c, first + i, result, i);
}

/* Computes what the member gets, in its own memory. */
static inline void routes_expect(const struct routes_case *c, int member, struct tensor *result)
{
    struct shape shape = c->each[member]->shape;
    struct error err = ERROR_INIT;
    int64_t hands[ROUTES_MAX], rows = 0, at = 0, unit = 1;
    if (c->kind == COLLECTIVE_FIRST) {
        tensor_copy(result, c->each[c->root < 0 ? 0 : c->root], &err);
        return;
    }
    if (routes_adds(c->kind)) {
        routes_sum(c, member, result);
        return;
    }
    for (int i = 1; i < shape.rank; i++)
        unit *= shape.dims[i];
    for (int from = 0; from < c->n; from++) {
        routes_hands(c, from, hands);
        rows += hands[member];
    }
    bool zeros = c->kind != COLLECTIVE_PART && c->wants && c->root >= 0 && c->root != member;
    shape.dims[0] = zeros ? c->rows[member] : rows;
    routes_alloc(result, c->each[0]->type, &shape);
    for (int from = 0; from < c->n; from++) {
        int64_t first = 0;
        routes_hands(c, from, hands);
        for (int to = 0; to < member && c->kind == COLLECTIVE_PART; to++)
            first += hands[to] * unit;
        for (int64_t i = 0; i < hands[member] * unit; i++)
            routes_place(c, c->each[from], first + i, result, at++);
    }
}

/* ---- cases by chance ---- */

/* None, few, or many. */
static inline int64_t routes_rows(uint64_t *random, int64_t most)
{
    uint64_t which = unit_random(random) % 5;
    if (which < 2)
        return (int64_t)(which * (unit_random(random) % 4));
    return (int64_t)(unit_random(random) % (uint64_t)(which == 2 ? 40 : most));
}

/* Kind and rows of a value, of root and wants; how many rows each member brings. */
static inline void routes_choose(struct routes_case *c, bool floats, uint64_t *random, int64_t most,
                                 int64_t *brings)
{
    static const enum collective_kind any[] = {
        COLLECTIVE_SUM,      COLLECTIVE_FIRST, COLLECTIVE_ROWS,      COLLECTIVE_PART,
        COLLECTIVE_SUM_PART, COLLECTIVE_MEAN,  COLLECTIVE_MEAN_ROWS, COLLECTIVE_MEAN_PART};
    int64_t same = routes_rows(random, most), total = 0, hands[ROUTES_MAX];
    do
        c->kind = any[unit_random(random) % (floats ? 8 : 5)];
    while (c->root >= 0 && (c->kind == COLLECTIVE_SUM_PART || c->kind == COLLECTIVE_MEAN_PART));
    bool is_part = c->kind == COLLECTIVE_PART || c->kind == COLLECTIVE_SUM_PART ||
                   c->kind == COLLECTIVE_MEAN_PART;
    bool gathers = !routes_adds(c->kind) && c->kind != COLLECTIVE_FIRST;
    memset(brings, 0, ROUTES_MAX * sizeof *brings);
    for (int k = 0; k < c->n; k++) {
        c->rows[k] = routes_rows(random, most);
        total += c->rows[k];
    }
    for (int k = 0; k < c->n; k++) {
        brings[k] = gathers && (!is_part || c->root >= 0) ? routes_rows(random, most) : same;
        if (c->wants && is_part && c->kind != COLLECTIVE_PART)
            brings[k] = total;
        else if (c->wants && is_part && c->root == k)
            brings[k] = total;
    }
    for (int to = 0; to < c->n && c->wants && c->kind == COLLECTIVE_PART && c->root < 0; to++) {
        routes_deal(c->rows[to], c->n, hands);
        for (int k = 0; k < c->n; k++)
            brings[k] = (to ? brings[k] : 0) + hands[k];
    }
}

#endif
