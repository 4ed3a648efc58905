/* SPDX-License-Identifier: Apache-2.0
 *
 * Collectives by servers: the results equal those of collective_combine, with as many bytes as the
 * formulas give, whichever end leaves when. ROUNDS is how many groups there are (default 12),
 * ROUNDS_SEED the first one's seed.
 */
#include "lib/combine.h"
#include "lib/random.h"
#include "lib/reductions.h"
#include "transport/collective/collective_round.h"

#define N_VALUES 3

/* ---- rounds ---- */

struct served_round {
    struct tensor each[MEMBERS_MAX][8];
    enum collective_kind kinds[N_VALUES];
    int n_values;
};

static void make_value(struct served_round *c, int i, int n, uint64_t *random)
{
    static const enum dtype types[] = {FLOAT32, BFLOAT16, FLOAT64, FLOAT16, INT32, INT64, UINT8};
    static const enum collective_kind kinds[] = {COLLECTIVE_MEAN, COLLECTIVE_MEAN_ROWS,
                                                 COLLECTIVE_SUM, COLLECTIVE_ROWS, COLLECTIVE_FIRST};
    enum dtype type = types[unit_random(random) % 7];
    int from = dtype_is_floating(type) ? 0 : 2;
    int64_t width = 1 + (int64_t)(unit_random(random) % 300);
    int64_t rows = (int64_t)(unit_random(random) % 2000);
    c->kinds[i] = kinds[from + (int)(unit_random(random) % (uint64_t)(5 - from))];
    for (int k = 0; k < n; k++) {
        bool own = collective_gathers(c->kinds[i]);
        struct shape shape =
            shape_matrix(own ? (int64_t)(unit_random(random) % 2000) : rows, width);
        fill(&c->each[k][i], type, &shape, k);
    }
}

static void make_round(struct served_round *c, int n, uint64_t *random)
{
    c->n_values = 1 + (int)(unit_random(random) % N_VALUES);
    for (int i = 0; i < c->n_values; i++)
        make_value(c, i, n, random);
}

static void begin(struct members *all, struct served_round *c, int rank, int64_t step,
                  struct reply *reply)
{
    struct collective_call call = {.key = {"served", step, 0},
                                   .values = c->each[rank],
                                   .kinds = c->kinds,
                                   .n = c->n_values,
                                   .by_servers = true};
    member_call(all, rank, &call, reply);
}

/* Expects, for each of these members, the results of their values. */
static void expect(struct served_round *c, const int *ranks, int n, struct reply *replies)
{
    for (int i = 0; i < c->n_values; i++) {
        struct error err = ERROR_INIT;
        struct tensor expected = TENSOR_INIT;
        const struct tensor *each[MEMBERS_MAX];
        for (int k = 0; k < n; k++)
            each[k] = &c->each[ranks[k]][i];
        must(collective_combine(c->kinds[i], each, n, &expected, &err), &err);
        for (int k = 0; k < n; k++) {
            struct reply *reply = &replies[ranks[k]];
            reply_wait(reply);
            must(reply->err.code, &reply->err);
            assert_int_equal(reply->members, n);
            if (!tensor_equal(&reply->results[i], &expected))
                fail_msg("member %d of %d, value %d, kind %d of %s", ranks[k], n, i, c->kinds[i],
                         shape_text_typed(expected.type, &expected.shape));
        }
        tensor_release(&expected);
    }
    for (int k = 0; k < n; k++)
        reply_release(&replies[ranks[k]]);
}

static const int everybody[MEMBERS_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};

static void check_round(struct members *all, uint64_t *random, int64_t step)
{
    struct served_round c;
    struct reply replies[MEMBERS_MAX];
    make_round(&c, all->n, random);
    for (int k = 0; k < all->n; k++)
        begin(all, &c, k, step, &replies[k]);
    expect(&c, everybody, all->n, replies);
    release_all(all, c.each, c.n_values);
}

static void sums_and_rows_are_those_of_members(void **state)
{
    struct seed_range seeds = seeds_of("ROUNDS", 12);
    (void)state;
    for (int i = 0; i < seeds.n; i++) {
        uint64_t seed = seeds.first + (uint64_t)i, random = seed;
        struct members all;
        const int counts[2] = {1 + (int)(unit_random(&random) % 5),
                               1 + (int)(unit_random(&random) % 3)};
        print_message("ROUNDS_SEED=%llu\n", (unsigned long long)seed);
        members_start_served(&all, counts, (int)(unit_random(&random) % 9), NULL);
        for (int64_t step = 0; step < 3; step++)
            check_round(&all, &random, step);
        members_stop(&all);
    }
}

/* Two groups of two use the same key at the same time. */
static void groups_do_not_mix(void **state)
{
    static const int counts[2] = {4, 2};
    static const enum collective_kind kind = COLLECTIVE_SUM;
    struct shape shape = shape_vector(200000);
    struct members all;
    struct tensor values[MEMBERS_MAX][8];
    struct reply replies[4];
    (void)state;
    members_start_served(&all, counts, 0, NULL);
    for (int k = 0; k < 4; k++) {
        fill(&values[k][0], FLOAT32, &shape, k);
        struct collective_call call = {.key = {"pairs", 1, 0},
                                       .values = values[k],
                                       .kinds = &kind,
                                       .n = 1,
                                       .by_servers = true,
                                       .group = {2, 1}};
        member_call(&all, k, &call, &replies[k]);
    }
    for (int k = 0; k < 4; k++) {
        struct error err = ERROR_INIT;
        struct tensor expected = TENSOR_INIT;
        const struct tensor *each[2] = {&values[k / 2 * 2][0], &values[k / 2 * 2 + 1][0]};
        must(collective_combine(kind, each, 2, &expected, &err), &err);
        reply_wait(&replies[k]);
        must(replies[k].err.code, &replies[k].err);
        assert_true(tensor_equal(&replies[k].results[0], &expected));
        reply_release(&replies[k]);
        tensor_release(&expected);
    }
    release_all(&all, values, 1);
    members_stop(&all);
}

static void others_go_on_without_who_has_left(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        static const int ranks[3] = {0, 2, 3}, counts[2] = {4, 2};
        struct served_round c;
        struct reply replies[MEMBERS_MAX];
        struct members all;
        uint64_t random = seed;
        members_start_served(&all, counts, 0, NULL);
        check_round(&all, &random, 1);
        make_round(&c, 4, &random);
        for (int k = 0; k < 3; k++) {
            if (k == (int)(seed % 3))
                all.ends[1].collective->leave(all.ends[1].collective);
            begin(&all, &c, ranks[k], 2, &replies[ranks[k]]);
        }
        expect(&c, ranks, 3, replies);
        release_all(&all, c.each, c.n_values);
        members_stop(&all);
    }
}

/* ---- ends that are lost ---- */

enum { LOST_COUNT = 1 << 20 };

static void make_large(struct served_round *c, enum collective_kind kind, int n)
{
    struct shape shape = shape_matrix(LOST_COUNT / 1024, 1024);
    *c = (struct served_round){.kinds = {kind}, .n_values = 1};
    for (int k = 0; k < n; k++)
        fill(&c->each[k][0], FLOAT32, &shape, k);
}

/* It has the right result, or knows which end is lost. */
static void expect_either(struct reply *reply, const struct tensor *expected, const char *lost)
{
    reply_wait(reply);
    if (reply->err.code) {
        assert_int_equal(reply->err.code, ERR_UNAVAILABLE);
        if (!strstr(reply->err.text, lost) || !strstr(reply->err.text, "'served'") ||
            strchr(reply->err.text, '\n'))
            fail_msg("expected the loss of %s: %s", lost, reply->err.text);
    } else {
        assert_true(tensor_equal(&reply->results[0], expected));
    }
    reply_release(reply);
}

/* Members that died come back, all of them, to the same servers. */
static void members_come_back(struct members *all)
{
    struct error err = ERROR_INIT;
    const char *tasks[ENDS_MAX];
    const struct collective_tasks group = {tasks, all->n, all->n_servers, NULL, NULL};
    for (int k = 0; k < all->n + all->n_servers; k++)
        tasks[k] = all->tasks[k];
    pthread_barrier_destroy(&all->listening);
    pthread_barrier_destroy(&all->there);
    pthread_barrier_init(&all->listening, NULL, (unsigned)all->n);
    pthread_barrier_init(&all->there, NULL, (unsigned)all->n + 1);
    for (int k = 0; k < all->n; k++) {
        struct member_end *end = &all->ends[k];
        struct conns_options options = {
            .peers = {.task = all->tasks[k], .folder = all->folder, .incarnation = 8, .lease = 5}};
        member_kill(end);
        end->conns = conns_new(&options, &err);
        assert_non_null(end->conns);
        end->met = (struct error)ERROR_INIT;
        member_begin(end, &group);
    }
    pthread_barrier_wait(&all->there);
    for (int k = 0; k < all->n; k++)
        must(all->ends[k].met.code, &all->ends[k].met);
}

static void check_loss(enum collective_kind kind, int lost, unsigned delay)
{
    static const int counts[2] = {3, 2};
    struct members all;
    struct served_round c;
    struct reply replies[MEMBERS_MAX];
    struct tensor expected = TENSOR_INIT;
    struct error err = ERROR_INIT;
    const struct tensor *each[3];
    make_large(&c, kind, 3);
    for (int k = 0; k < 3; k++)
        each[k] = &c.each[k][0];
    must(collective_combine(kind, each, 3, &expected, &err), &err);
    members_start_served(&all, counts, delay % 3 ? 5 : 0, NULL);
    for (int k = 0; k < 3; k++)
        begin(&all, &c, k, 1, &replies[k]);
    usleep(delay);
    member_kill(&all.ends[lost]);
    for (int k = 0; k < 3; k++) {
        if (k != lost)
            expect_either(&replies[k], &expected, all.tasks[lost]);
        else
            reply_release(&replies[k]);
    }
    if (lost < 3) { /* with the same key: nothing from before may count */
        uint64_t random = delay;
        members_come_back(&all);
        for (int k = 0; k < 3; k++)
            begin(&all, &c, k, 1, &replies[k]);
        expect(&c, everybody, 3, replies);
        check_round(&all, &random, 2);
    }
    release_all(&all, c.each, 1);
    tensor_release(&expected);
    members_stop(&all);
}

static void an_end_is_lost_at_any_time(void **state)
{
    static const enum collective_kind kinds[] = {COLLECTIVE_SUM, COLLECTIVE_ROWS, COLLECTIVE_MEAN};
    (void)state;
    for (unsigned i = 0; i < 18; i++)
        check_loss(kinds[i % 3], i % 2 ? 2 : 4, i * 500);
}

/* ---- the beginning ---- */

/* Once members have joined, the servers' ends of their links are open, too: a part that a server
 * passes on reaches all other members. */
static void servers_know_who_has_met(void **state)
{
    const int counts[2] = {3, 2};
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct members all;
        members_start_served(&all, counts, i % 4, NULL);
        for (int server = 3; server < 5; server++) {
            for (int k = 0; k < 3; k++) {
                struct link *link = peers_find(conns_peers(all.ends[server].conns), all.tasks[k]);
                assert_non_null(link);
                link_release(link);
            }
        }
        members_stop(&all);
    }
}

/* ---- bytes ---- */

static uint64_t bytes_to(struct members *all, int from, int first, int end)
{
    uint64_t bytes = 0;
    for (int k = first; k < end; k++)
        bytes += member_received(all, k, from);
    return bytes;
}

static void expect_bytes(const char *what, uint64_t bytes, uint64_t formula)
{
    if (bytes < formula || bytes > formula + formula / 50 + 6000)
        fail_msg("%s: %llu bytes, not %llu", what, (unsigned long long)bytes,
                 (unsigned long long)formula);
}

/* Each member sends a value once, whatever the number of members, and gets its sum once; it sends
 * rows once even if several others get them. Servers have equal shares. */
static void check_bytes(enum collective_kind kind, int n)
{
    const int counts[2] = {n, 2};
    const uint64_t value = LOST_COUNT * sizeof(float);
    struct members all;
    struct served_round c;
    struct reply replies[MEMBERS_MAX];
    make_large(&c, kind, n);
    members_start_served(&all, counts, 0, NULL);
    for (int k = 0; k < n; k++)
        begin(&all, &c, k, 1, &replies[k]);
    expect(&c, everybody, n, replies);
    bool relayed = kind == COLLECTIVE_ROWS && n > 2, served = kind == COLLECTIVE_SUM || relayed;
    for (int k = 0; k < n; k++) {
        expect_bytes("members", bytes_to(&all, k, 0, n), served ? 0 : value);
        expect_bytes("servers", bytes_to(&all, k, n, n + 2), served ? value : 0);
        expect_bytes("the first server", bytes_to(&all, k, n, n + 1), served ? value / 2 : 0);
    }
    uint64_t sent = relayed ? value * (uint64_t)(n * (n - 1)) : served ? value * (uint64_t)n : 0;
    expect_bytes("all servers' answers", bytes_to(&all, n, 0, n) + bytes_to(&all, n + 1, 0, n),
                 sent);
    release_all(&all, c.each, 1);
    members_stop(&all);
}

static void values_cross_once(void **state)
{
    (void)state;
    for (int n = 2; n <= 4; n++) {
        check_bytes(COLLECTIVE_SUM, n);
        check_bytes(COLLECTIVE_ROWS, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_rows_are_those_of_members),
        cmocka_unit_test(groups_do_not_mix),
        cmocka_unit_test(others_go_on_without_who_has_left),
        cmocka_unit_test(an_end_is_lost_at_any_time),
        cmocka_unit_test(servers_know_who_has_met),
        cmocka_unit_test(values_cross_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
