/* SPDX-License-Identifier: Apache-2.0
 *
 * Random graphs with collectives of several kinds and types, which two to four members run, each on
 * the CPU or on a device that it may share (lib/device_test.h): the bits equal those of a run on
 * the CPU only, and no member gets another's garbage, which an index out of range makes now and
 * then. REDUCTIONS is how many (default 150), REDUCTIONS_SEED the first one's seed.
 */
#include "lib/reducers.h"

#include <stdlib.h>

#include "lib/unit.h"

#define N_STEPS 6
#define N_REDUCES 4

/* ---- graphs ---- */

struct making {
    struct str text;
    uint64_t random;
    int n;         /* values n0, n1, ... of one type and shape */
    int n_reduces; /* r0, r1, ... */
    int n_routes;  /* t0, t1, ... */
    int n_fetches;
};

static int below(uint64_t *random, int n)
{
    return (int)(unit_random(random) % (uint64_t)n);
}

static int any(struct making *m)
{
    return below(&m->random, 2) ? m->n - 1 : below(&m->random, m->n);
}

static void add_value(struct making *m)
{
    static const char *const binary[] = {"Add", "Sub", "Maximum"};
    static const char *const unary[] = {"Neg", "Tanh", "Abs"};
    int a = any(m), b = any(m);
    if (below(&m->random, 2))
        str_printf(&m->text, "n%d = %s(n%d)\n", m->n, unary[below(&m->random, 3)], a);
    else
        str_printf(&m->text, "n%d = %s(n%d, n%d)\n", m->n, binary[below(&m->random, 3)], a, b);
    m->n++;
}

static void add_fetch(struct making *m, int reduce, int output)
{
    if (m->n_fetches < REDUCERS_FETCHES - 1) /* the variable */
        str_printf(&m->text, "y%c = Identity(r%d:%d)\n", 'a' + m->n_fetches++, reduce, output);
}

/* In the first collective, the first input is garbage where an index is out of range. */
static void add_reduce(struct making *m)
{
    static const char *const types[] = {"float32", "float64", "bfloat16", "float16", "int32"};
    static const char *const kinds[] = {"sum",      "first", "rows",      "part",
                                        "sum_part", "mean",  "mean_rows", "mean_part"};
    struct str inputs = STR_INIT, reductions = STR_INIT;
    int r = m->n_reduces++, n = 1 + below(&m->random, 3), first = r ? any(m) : 1;
    str_printf(&inputs, "n%d", first);
    str_append(&reductions, "\"sum\"");
    for (int i = 1; i < n; i++) {
        int type = below(&m->random, 5), kind = below(&m->random, type == 4 ? 5 : 8);
        str_printf(&m->text, "c%d_%d = Cast(n%d) {SrcT=float32, DstT=%s}\n", r, i, any(m),
                   types[type]);
        str_printf(&inputs, ", c%d_%d", r, i);
        str_printf(&reductions, ", \"%s\"", kinds[kind]);
    }
    str_printf(&m->text, "r%d = AllReduce(%s) {reductions=[%s]}\n", r, str_text(&inputs),
               str_text(&reductions));
    str_printf(&m->text, "n%d = Identity(r%d:0)\n", m->n++, r);
    for (int i = 0; i < n; i++)
        add_fetch(m, r, i);
    str_release(&inputs);
    str_release(&reductions);
}

/* Routes a value that is whole in all members; the result has another number of rows. */
static void add_route(struct making *m)
{
    static const char *const ops[] = {"CollectiveBroadcast", "CollectiveGather",
                                      "CollectiveScatter",   "CollectiveReduceScatter",
                                      "CollectiveAllGather", "CollectiveAllToAll"};
    int op = below(&m->random, 6), value = m->n - 1;
    str_printf(&m->text, "t%d = %s(n%d)%s\n", m->n_routes, ops[op], value,
               op < 3 && below(&m->random, 2) ? " {root=1}" : "");
    if (m->n_fetches < REDUCERS_FETCHES - 1)
        str_printf(&m->text, "y%c = Neg(t%d)\n", 'a' + m->n_fetches++, m->n_routes);
    m->n_routes++;
}

/* The variable is written at the end. */
static void make(struct making *m)
{
    str_append(&m->text, "x = Placeholder() {dtype=float32, shape=[4]}\n"
                         "table = Const() {dtype=float32, value=[3,1,4,1,5,9,2,6]}\n"
                         "i = Cast(x) {SrcT=float32, DstT=int32}\n"
                         "n0 = Identity(x)\n"
                         "n1 = Gather(table, i)\n"
                         "v = Variable() {dtype=float32, shape=[4]}\n"
                         "zero = Const() {dtype=float32, value=[0,0,0,0]}\n"
                         "init = Assign(v, zero)\n");
    m->n = 2;
    int n_reduces = 1 + below(&m->random, N_REDUCES);
    while (m->n_reduces < n_reduces) {
        for (int i = below(&m->random, 4); i > 0; i--)
            add_value(m);
        add_reduce(m);
        if (below(&m->random, 2))
            add_route(m);
    }
    str_append(&m->text, "add = AssignAdd(v, r0:0");
    for (int r = 1; r < m->n_reduces; r++)
        str_printf(&m->text, ", ^r%d", r);
    str_printf(&m->text, ")\ny%c = Identity(v, ^add)\n", 'a' + m->n_fetches);
}

/* ---- groups ---- */

struct tally {
    int on_device, mixed, failures;
};

/* Returns false if a value differs. */
static bool is_equal(const struct reducers *a, const struct reducers *b)
{
    bool equal = true;
    for (int k = 0; equal && k < a->n; k++) {
        if (a->each[k].code || b->each[k].code)
            fail_msg("%s%s", a->each[k].err.text, b->each[k].err.text);
        for (int i = 0; equal && i < a->n_fetches; i++)
            equal = tensor_equal(&a->each[k].values[i], &b->each[k].values[i]);
    }
    return equal;
}

/* All members failed, some with the error of the one that caused it, and changed nothing. */
static bool is_refused(const struct reducers *all)
{
    int n_named = 0;
    bool failed = true;
    for (int k = 0; k < all->n; k++) {
        const struct reduce_member *r = &all->each[k];
        failed &= r->code == ERR_DATA || r->code == ERR_CANCELLED;
        n_named += r->code == ERR_DATA && strstr(r->err.text, "node 'n1': Gather: index 8") != NULL;
    }
    return failed && n_named;
}

static bool step(struct reducers *there, struct reducers *here, int64_t number, uint64_t *random,
                 struct tally *tally)
{
    float x[REDUCERS_MAX][REDUCERS_LENGTH];
    bool fails = false;
    for (int k = 0; k < there->n; k++)
        for (int i = 0; i < REDUCERS_LENGTH; i++) {
            x[k][i] = (float)(below(random, 60) ? below(random, 8) : 8);
            fails |= x[k][i] == 8;
        }
    reducers_step(there, number, x);
    reducers_step(here, number, x);
    tally->failures += fails;
    return fails ? is_refused(there) && is_refused(here) : is_equal(there, here);
}

static void check(uint64_t seed, struct device *cpu, struct tally *tally)
{
    struct device *device = device_open_with("TF_TEST_DEVICE_SEED", (long)seed);
    struct device *there[REDUCERS_MAX], *here[REDUCERS_MAX];
    struct making m = {.text = STR_INIT, .random = seed};
    struct reducers on_devices, on_cpu;
    int n = 2 + below(&m.random, 3), n_there = 0;
    bool mixes = below(&m.random, 2);
    for (int k = 0; k < n; k++) {
        there[k] = mixes && below(&m.random, 2) ? cpu : device;
        here[k] = cpu;
        n_there += there[k] == device;
    }
    make(&m);
    tally->on_device += n_there == n;
    tally->mixed += n_there && n_there < n;
    reducers_open(&on_devices, n, there, str_text(&m.text));
    reducers_open(&on_cpu, n, here, str_text(&m.text));
    for (int64_t number = 1; number <= N_STEPS; number++)
        if (!step(&on_devices, &on_cpu, number, &m.random, tally))
            fail_msg("REDUCTIONS_SEED=%llu: other values or errors in step %d\n%s",
                     (unsigned long long)seed, (int)number, str_text(&m.text));
    reducers_close(&on_devices);
    reducers_close(&on_cpu);
    device_free(device);
    str_release(&m.text);
}

static void bits_are_those_of_the_cpu(void **state)
{
    struct seed_range seeds = seeds_of("REDUCTIONS", 150);
    int n = seeds.n;
    struct error err = ERROR_INIT;
    struct device *cpu = device_open("CPU", 0, &(struct device_options){.threads = 1}, &err);
    struct tally tally = {0};
    (void)state;
    for (int i = 0; i < n; i++)
        check(seeds.first + (uint64_t)i, cpu, &tally);
    assert_true(seeds.given || (tally.on_device > n / 3 && tally.mixed > n / 5));
    assert_true(seeds.given || (tally.failures > n / 5 && tally.failures < n * N_STEPS / 2));
    device_free(cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bits_are_those_of_the_cpu)};
    test_device_path();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
