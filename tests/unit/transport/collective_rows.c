/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that go by rows, between processes: their receivers, and the bytes sent, for any numbers
 * of rows, compared with rows dealt one by one (lib/routes.h). ROUTES is how many calls there are
 * (default 40), ROUTES_SEED the first one's seed.
 */
#include "lib/reductions.h"
#include "lib/routes.h"

#define N_VALUES 4

struct round_case {
    struct routes_case values[N_VALUES];
    struct tensor each[MEMBERS_MAX][8];
    int64_t rows[MEMBERS_MAX][N_VALUES];
    enum collective_kind kinds[N_VALUES];
    int n_values;
};

static void make_value(struct round_case *c, int i, int n, uint64_t *random)
{
    static const enum dtype types[] = {FLOAT32, BFLOAT16, FLOAT64, FLOAT16, INT32, INT64, UINT8};
    static const int64_t widths[] = {1, 7, 33, 256};
    struct routes_case *value = &c->values[i];
    enum dtype type = types[unit_random(random) % 7];
    int64_t brings[ROUTES_MAX], width = widths[unit_random(random) % 4];
    value->n = n;
    routes_choose(value, dtype_is_floating(type), random, 300000 / width, brings);
    c->kinds[i] = value->kind;
    for (int k = 0; k < n; k++) {
        struct shape shape = shape_matrix(brings[k], width);
        fill(&c->each[k][i], type, &shape, k);
        value->each[k] = &c->each[k][i];
        c->rows[k][i] = value->rows[k];
    }
}

static void make_round(struct round_case *c, int n, uint64_t *random)
{
    int root = unit_random(random) % 2 ? (int)(unit_random(random) % (uint64_t)n) : -1;
    bool wants = unit_random(random) % 3 == 0;
    memset(c, 0, sizeof *c);
    c->n_values = 1 + (int)(unit_random(random) % N_VALUES);
    for (int i = 0; i < c->n_values; i++) {
        c->values[i].root = root;
        c->values[i].wants = wants;
        make_value(c, i, n, random);
    }
}

static struct collective_call call_of(const struct round_case *c, int member, int64_t step)
{
    const struct routes_case *value = &c->values[0];
    return (struct collective_call){.key = {"rows", step, 0},
                                    .values = c->each[member],
                                    .kinds = c->kinds,
                                    .n = c->n_values,
                                    .has_root = value->root >= 0,
                                    .root = value->root,
                                    .rows = value->wants ? c->rows[member] : NULL};
}

static void expect_round(struct round_case *c, const int *ranks, struct reply *replies,
                         uint64_t seed)
{
    for (int k = 0; k < c->values[0].n; k++) {
        struct reply *reply = &replies[ranks[k]];
        reply_wait(reply);
        if (reply->err.code)
            fail_msg("ROUTES_SEED=%llu: %s", (unsigned long long)seed, reply->err.text);
        for (int i = 0; i < c->n_values; i++) {
            struct tensor expected = TENSOR_INIT;
            routes_expect(&c->values[i], k, &expected);
            if (!tensor_equal(&reply->results[i], &expected))
                fail_msg("ROUTES_SEED=%llu: member %d of %d, value %d, kind %d, root %d%s: %s, %s",
                         (unsigned long long)seed, k, c->values[i].n, i, c->kinds[i],
                         c->values[i].root, c->values[i].wants ? " wants" : "",
                         shape_text_typed(expected.type, &expected.shape),
                         shape_text_typed(reply->results[i].type, &reply->results[i].shape));
            tensor_release(&expected);
        }
        reply_release(reply);
    }
}

static void release_round(struct round_case *c)
{
    for (int k = 0; k < MEMBERS_MAX; k++)
        for (int i = 0; i < c->n_values; i++)
            tensor_release(&c->each[k][i]);
}

static void check_round(struct members *all, uint64_t seed, uint64_t *random, int64_t step)
{
    static const int ranks[MEMBERS_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct round_case c;
    struct reply replies[MEMBERS_MAX];
    make_round(&c, all->n, random);
    for (int k = 0; k < all->n; k++) {
        struct collective_call call = call_of(&c, k, step);
        member_call(all, k, &call, &replies[k]);
    }
    expect_round(&c, ranks, replies, seed);
    release_round(&c);
}

static void rows_go_where_they_belong(void **state)
{
    struct seed_range seeds = seeds_of("ROUTES", 40);
    (void)state;
    for (int i = 0; i < seeds.n; i++) {
        uint64_t seed = seeds.first + (uint64_t)i, random = seed;
        struct members all;
        int n = 1 + (int)(unit_random(&random) % 5);
        members_start_some_shared(&all, n, (int)(unit_random(&random) % (uint64_t)(n + 1)));
        for (int64_t step = 0; step < 3; step++)
            check_round(&all, seed, &random, step);
        members_stop(&all);
    }
}

/* Parts were made for a member that then does not take part. */
static void rows_of_a_member_that_leaves_go_to_others(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        static const int ranks[3] = {0, 2, 3};
        struct members all;
        struct reply replies[MEMBERS_MAX];
        struct round_case c;
        uint64_t random = seed;
        members_start_some_shared(&all, 4, seed % 2 ? 4 : 0);
        make_round(&c, 3, &random);
        for (int k = 0; k < 3; k++) {
            struct collective_call call = call_of(&c, k, 1);
            if (call.has_root)
                call.root = ranks[call.root];
            if (k == (int)(seed % 3))
                all.ends[1].collective->leave(all.ends[1].collective);
            member_call(&all, ranks[k], &call, &replies[ranks[k]]);
        }
        expect_round(&c, ranks, replies, seed);
        release_round(&c);
        members_stop(&all);
    }
}

/* ---- members that are lost, or cancel ---- */

enum { LOST_BYTES = 12 << 20 };

static void begin_large(struct members *all, enum collective_kind kind, struct tensor *values,
                        struct reply *replies)
{
    static enum collective_kind kinds[1];
    kinds[0] = kind;
    for (int k = 0; k < all->n; k++) {
        struct shape shape = shape_matrix(LOST_BYTES / 1000, 1000);
        fill(&values[k], UINT8, &shape, k);
    }
    for (int k = 0; k < all->n; k++) {
        struct collective_call call = {
            .key = {"large", 1, 0}, .values = &values[k], .kinds = kinds, .n = 1};
        member_call(all, k, &call, &replies[k]);
    }
}

/* It has the right result, or knows which member is lost. */
static void expect_either(struct reply *reply, const struct routes_case *c, int member)
{
    struct tensor expected = TENSOR_INIT;
    reply_wait(reply);
    if (reply->err.code) {
        assert_int_equal(reply->err.code, ERR_UNAVAILABLE);
        if (!strstr(reply->err.text, "worker:2") || !strstr(reply->err.text, "'large'"))
            fail_msg("%s", reply->err.text);
    } else {
        routes_expect(c, member, &expected);
        assert_true(tensor_equal(&reply->results[0], &expected));
        tensor_release(&expected);
    }
    reply_release(reply);
}

static void check_loss(enum collective_kind kind, unsigned delay, bool cancels)
{
    struct members all;
    struct tensor values[3];
    struct reply replies[3];
    struct routes_case c = {.kind = kind, .n = 3, .root = -1};
    members_start_some_shared(&all, 3, delay % 3 ? 3 : 0);
    begin_large(&all, kind, values, replies);
    usleep(delay);
    struct collective *lost = all.ends[2].collective;
    if (cancels)
        cancels = lost->cancel(lost, &replies[2].waiter); /* false: the call was answered */
    member_kill(&all.ends[2]);
    for (int k = 0; k < 3; k++)
        c.each[k] = &values[k];
    for (int k = 0; k < 2; k++)
        expect_either(&replies[k], &c, k);
    if (cancels)
        assert_false(replies[2].done);
    reply_release(&replies[2]);
    for (int k = 0; k < 3; k++)
        tensor_release(&values[k]);
    members_stop(&all);
}

static void a_member_is_lost_at_any_time(void **state)
{
    static const enum collective_kind kinds[] = {COLLECTIVE_ROWS, COLLECTIVE_PART,
                                                 COLLECTIVE_SUM_PART};
    (void)state;
    for (unsigned i = 0; i < 18; i++)
        check_loss(kinds[i % 3], i * 400, i % 2);
}

/* ---- bytes ---- */

static uint64_t bytes_from(struct members *all, int rank)
{
    uint64_t bytes = 0;
    for (int k = 0; k < all->n; k++)
        bytes += member_received(all, k, rank);
    return bytes;
}

struct traffic {
    const char *what;
    enum collective_kind kind;
    bool has_root, wants;
    int64_t rows[3]; /* of 1000 bytes, brought by each member */
    int64_t wanted[3];
    int64_t sends[3]; /* rows */
};

/* Rows are sent only to their receivers. Root is 1. */
static const struct traffic traffics[] = {
    {"broadcast", COLLECTIVE_FIRST, true, false, {3000, 3000, 3000}, {0}, {0, 6000, 0}},
    {"gather", COLLECTIVE_ROWS, true, false, {1000, 500, 2000}, {0}, {1000, 0, 2000}},
    {"small gather", COLLECTIVE_ROWS, true, false, {60, 50, 40}, {0}, {60, 0, 40}},
    {"scatter", COLLECTIVE_PART, true, false, {0, 3000, 100}, {0}, {0, 2000, 0}},
    {"small scatter", COLLECTIVE_PART, true, false, {10, 60, 0}, {0}, {0, 40, 0}},
    {"scatter back", COLLECTIVE_PART, true, true, {0, 60, 0}, {50, 10, 0}, {0, 50, 0}},
    {"sum to root", COLLECTIVE_SUM, true, false, {900, 900, 900}, {0}, {900, 0, 900}},
    {"all rows", COLLECTIVE_ROWS, false, false, {1000, 10, 0}, {0}, {2000, 20, 0}},
    {"all to all", COLLECTIVE_PART, false, false, {3000, 3000, 3000}, {0}, {2000, 2000, 2000}},
    {"small all to all", COLLECTIVE_PART, false, false, {30, 30, 30}, {0}, {20, 20, 20}},
    {"sum part", COLLECTIVE_SUM_PART, false, false, {3000, 3000, 3000}, {0}, {2000, 2000, 2000}},
    {"small sum part", COLLECTIVE_SUM_PART, false, false, {60, 60, 60}, {0}, {40, 40, 40}},
    {"sum back",
     COLLECTIVE_SUM_PART,
     false,
     true,
     {600, 600, 600},
     {100, 200, 300},
     {500, 400, 300}},
};

static void check_traffic(struct members *all, const struct traffic *t, int64_t step)
{
    struct tensor values[3];
    struct reply replies[3];
    uint64_t before[3];
    for (int k = 0; k < 3; k++) {
        struct shape shape = shape_matrix(t->rows[k], 1000);
        fill(&values[k], UINT8, &shape, k);
        before[k] = bytes_from(all, k);
    }
    for (int k = 0; k < 3; k++) {
        struct collective_call call = {.key = {"bytes", step, 0},
                                       .values = &values[k],
                                       .kinds = &t->kind,
                                       .n = 1,
                                       .has_root = t->has_root,
                                       .root = 1,
                                       .rows = t->wants ? &t->wanted[k] : NULL};
        member_call(all, k, &call, &replies[k]);
    }
    for (int k = 0; k < 3; k++) {
        reply_wait(&replies[k]);
        must(replies[k].err.code, &replies[k].err);
        reply_release(&replies[k]);
        tensor_release(&values[k]);
    }
    for (int k = 0; k < 3; k++) {
        uint64_t bytes = bytes_from(all, k) - before[k], rows = (uint64_t)t->sends[k] * 1000;
        if (bytes < rows || bytes > rows + rows / 100 + 6000)
            fail_msg("%s: member %d sends %llu bytes", t->what, k, (unsigned long long)bytes);
    }
}

static void nothing_is_sent_in_vain(void **state)
{
    struct members all;
    (void)state;
    members_start_some_shared(&all, 3, 0);
    for (size_t i = 0; i < sizeof traffics / sizeof *traffics; i++)
        check_traffic(&all, &traffics[i], (int64_t)i);
    members_stop(&all);
}

/* ---- errors ---- */

static void expect_refusal(struct members *all, const struct traffic *t, const char *why)
{
    struct tensor values[3];
    struct reply replies[3];
    static int64_t step = 100;
    step++;
    for (int k = 0; k < 3; k++) {
        struct shape shape = shape_matrix(t->rows[k], 1000);
        fill(&values[k], UINT8, &shape, k);
        struct collective_call call = {.key = {"refused", step, 0},
                                       .values = &values[k],
                                       .kinds = &t->kind,
                                       .n = 1,
                                       .has_root = t->has_root,
                                       .root = 3,
                                       .rows = t->wants ? &t->wanted[k] : NULL};
        member_call(all, k, &call, &replies[k]);
    }
    for (int k = 0; k < 3; k++) {
        reply_wait(&replies[k]);
        assert_int_equal(replies[k].err.code, ERR_DATA);
        if (!strstr(replies[k].err.text, why) || !strstr(replies[k].err.text, "'refused': "))
            fail_msg("%s: %s", t->what, replies[k].err.text);
        reply_release(&replies[k]);
        tensor_release(&values[k]);
    }
}

static void rows_that_do_not_fit_are_refused_by_all(void **state)
{
    static const struct traffic uneven = {.kind = COLLECTIVE_PART, .rows = {3, 3, 4}};
    static const struct traffic large = {.kind = COLLECTIVE_PART, .rows = {300, 3, 3}};
    static const struct traffic no_root = {.kind = COLLECTIVE_ROWS, .has_root = true};
    static const struct traffic no_giver = {.kind = COLLECTIVE_FIRST, .has_root = true};
    static const struct traffic too_few = {
        .kind = COLLECTIVE_SUM_PART, .wants = true, .rows = {3, 3, 3}, .wanted = {1, 1, 2}};
    struct members all;
    (void)state;
    members_start(&all, 3);
    expect_refusal(&all, &uneven, "a member brings 4 rows to be parted, another 3");
    expect_refusal(&all, &large, "a member brings 3 rows to be parted, another 300");
    expect_refusal(&all, &no_root, "the root, member 3, takes no part");
    expect_refusal(&all, &no_giver, "the root, member 3, takes no part");
    expect_refusal(&all, &too_few, "members want 4 rows back of one that brings 3");
    members_stop(&all);
}

static void a_root_gives_strings(void **state)
{
    static const enum collective_kind first = COLLECTIVE_FIRST;
    static const char *const texts[3] = {"none", "one", "two"};
    struct members all;
    struct tensor values[3];
    struct reply replies[3];
    struct error err = ERROR_INIT;
    (void)state;
    members_start(&all, 3);
    for (int k = 0; k < 3; k++) {
        struct collective_call call = {.key = {"text", 1, 0},
                                       .values = &values[k],
                                       .kinds = &first,
                                       .n = 1,
                                       .has_root = true,
                                       .root = 1};
        must(tensor_from_strings(&values[k], &SHAPE_SCALAR, &texts[k], NULL, &err), &err);
        member_call(&all, k, &call, &replies[k]);
    }
    for (int k = 0; k < 3; k++) {
        reply_wait(&replies[k]);
        must(replies[k].err.code, &replies[k].err);
        assert_true(tensor_equal(&replies[k].results[0], &values[1]));
        reply_release(&replies[k]);
    }
    for (int k = 0; k < 3; k++)
        tensor_release(&values[k]);
    members_stop(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_go_where_they_belong),
        cmocka_unit_test(rows_of_a_member_that_leaves_go_to_others),
        cmocka_unit_test(a_member_is_lost_at_any_time),
        cmocka_unit_test(nothing_is_sent_in_vain),
        cmocka_unit_test(a_root_gives_strings),
        cmocka_unit_test(rows_that_do_not_fit_are_refused_by_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
