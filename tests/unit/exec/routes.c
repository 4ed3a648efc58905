/* SPDX-License-Identifier: Apache-2.0
 *
 * The routing of rows among the members of a process, compared with rows dealt one by one
 * (lib/routes.h). ROUTES is how many calls there are (default 400), ROUTES_SEED the first's seed.
 */
#include "lib/routes.h"
#include "lib/local_collective.h"

#include <stdlib.h>

struct routed_reply {
    struct collective_waiter waiter; /* must be first */
    struct tensor result;
    struct error err;
    bool done;
};

static void answered(struct collective_waiter *waiter, const struct collective_results *results,
                     const struct error *failure)
{
    struct routed_reply *reply = (struct routed_reply *)waiter;
    reply->done = true;
    if (failure)
        reply->err = *failure;
    else
        tensor_share(&reply->result, &results->values[0]);
}

static void fill(struct tensor *t, enum dtype type, const struct shape *shape, uint64_t *random)
{
    routes_alloc(t, type, shape);
    for (int64_t i = 0; i < tensor_count(t); i++) {
        if (dtype_is_floating(type))
            tensor_set_float64(t, i, (double)(unit_random(random) % 2000) / 7 - 100);
        else
            tensor_set_int64(t, i, (int64_t)(unit_random(random) % 9000) - 4000);
    }
}

static void call_all(struct collective **members, const struct routes_case *c,
                     struct routed_reply *replies)
{
    for (int k = 0; k < c->n; k++) {
        struct collective_call call = {.key = {"rows", 1, 0},
                                       .values = c->each[k],
                                       .kinds = &c->kind,
                                       .n = 1,
                                       .has_root = c->root >= 0,
                                       .root = c->root,
                                       .rows = c->wants ? &c->rows[k] : NULL};
        replies[k] = (struct routed_reply){.waiter = {.done = answered}};
        members[k]->reduce(members[k], &call, &replies[k].waiter);
    }
}

static void expect_all(const struct routes_case *c, struct routed_reply *replies, uint64_t seed)
{
    for (int k = 0; k < c->n; k++) {
        struct tensor expected = TENSOR_INIT;
        assert_true(replies[k].done);
        if (replies[k].err.code)
            fail_msg("ROUTES_SEED=%llu: %s", (unsigned long long)seed, replies[k].err.text);
        routes_expect(c, k, &expected);
        if (!tensor_equal(&expected, &replies[k].result))
            fail_msg("ROUTES_SEED=%llu: member %d of %d, kind %d, root %d%s",
                     (unsigned long long)seed, k, c->n, c->kind, c->root, c->wants ? " wants" : "");
        tensor_release(&expected);
        tensor_release(&replies[k].result);
    }
}

static void check(uint64_t seed)
{
    static const enum dtype types[] = {FLOAT32, BFLOAT16, FLOAT64, FLOAT16, INT32, INT64, INT8};
    uint64_t random = seed;
    enum dtype type = types[unit_random(&random) % 7];
    struct routes_case c = {.n = 1 + (int)(unit_random(&random) % 5), .root = -1};
    struct collective *members[ROUTES_MAX];
    struct tensor values[ROUTES_MAX];
    struct routed_reply replies[ROUTES_MAX];
    int64_t brings[ROUTES_MAX];
    if (unit_random(&random) % 2)
        c.root = (int)(unit_random(&random) % (uint64_t)c.n);
    c.wants = unit_random(&random) % 3 == 0;
    routes_choose(&c, dtype_is_floating(type), &random, 60, brings);
    for (int k = 0; k < c.n; k++) {
        struct shape shape = shape_matrix(brings[k], 3);
        fill(&values[k], type, &shape, &random);
        c.each[k] = &values[k];
    }
    collective_local_new(c.n, members);
    call_all(members, &c, replies);
    expect_all(&c, replies, seed);
    for (int k = 0; k < c.n; k++) {
        members[k]->free(members[k]);
        tensor_release(&values[k]);
    }
}

static void rows_go_where_they_belong(void **state)
{
    struct seed_range seeds = seeds_of("ROUTES", 400);
    (void)state;
    for (int i = 0; i < seeds.n; i++)
        check(seeds.first + (uint64_t)i);
}

/* Two members bring and want so many rows each, for one kind. */
static void expect_refusal(enum collective_kind kind, int root, const int64_t *rows,
                           const int64_t *wanted, const char *why)
{
    struct routes_case c = {.kind = kind, .n = 2, .root = root, .wants = wanted != NULL};
    struct collective *members[2];
    struct tensor values[2];
    struct routed_reply replies[2];
    for (int k = 0; k < 2; k++) {
        struct shape shape = shape_matrix(rows[k], 2);
        routes_alloc(&values[k], FLOAT32, &shape);
        c.each[k] = &values[k];
        c.rows[k] = wanted ? wanted[k] : 0;
    }
    collective_local_new(2, members);
    call_all(members, &c, replies);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(replies[k].err.code, ERR_DATA);
        if (!strstr(replies[k].err.text, why))
            fail_msg("expected '%s' in: %s", why, replies[k].err.text);
        members[k]->free(members[k]);
        tensor_release(&values[k]);
    }
}

static void rows_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    expect_refusal(COLLECTIVE_PART, -1, (int64_t[]){3, 4}, NULL, "4 rows to be parted, another 3");
    expect_refusal(COLLECTIVE_SUM_PART, -1, (int64_t[]){3, 4}, NULL,
                   "a member brings float32[4,2]");
    expect_refusal(COLLECTIVE_ROWS, 2, (int64_t[]){3, 4}, NULL, "the root, member 2, takes no");
    expect_refusal(COLLECTIVE_FIRST, 7, (int64_t[]){3, 3}, NULL, "the root, member 7, takes no");
    expect_refusal(COLLECTIVE_PART, 1, (int64_t[]){3, 4}, (int64_t[]){2, 3},
                   "members want 5 rows back of one that brings 4");
    expect_refusal(COLLECTIVE_SUM_PART, -1, (int64_t[]){3, 3}, (int64_t[]){2, 2},
                   "members want 4 rows back of one that brings 3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_go_where_they_belong),
        cmocka_unit_test(rows_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
