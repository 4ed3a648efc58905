/* SPDX-License-Identifier: Apache-2.0
 *
 * Branches in plans with a fixed order change no bit: random graphs are compared with plans in
 * which each value waits for its own inputs. BRANCHES is how many (default 400), BRANCHES_SEED the
 * first one's seed.
 */
#include "lib/session.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "lib/random.h"

#define X "x = Placeholder() {dtype=float32, shape=[]}\n"

#define PREDICATES 3
#define NODES_MAX 40

/* The predicates that must hold for a value to exist, if known; 0: either may. */
struct known_value {
    signed char is[PREDICATES]; /* 1: false, 2: true */
};

struct soup {
    uint64_t random;
    struct str text;
    struct known_value known[NODES_MAX];
    struct known_value
        ran[NODES_MAX];       /* the node has run: a Switch runs even where its output is dead */
    char name[NODES_MAX][16]; /* of the values; the first always exists */
    int n;
};

static int below(struct soup *s, int n)
{
    return (int)(unit_random(&s->random) % (uint64_t)n);
}

static void add_value(struct soup *s, int id, int slot, struct known_value known,
                      struct known_value ran)
{
    snprintf(s->name[s->n], sizeof s->name[0], slot ? "n%d:%d" : "n%d", id, slot);
    s->ran[s->n] = ran;
    s->known[s->n++] = known;
}

static struct known_value both(struct known_value a, struct known_value b)
{
    for (int i = 0; i < PREDICATES; i++)
        a.is[i] |= b.is[i];
    return a;
}

static bool exclude(struct known_value a, struct known_value b)
{
    bool any = false;
    for (int i = 0; i < PREDICATES; i++)
        any |= (a.is[i] | b.is[i]) == 3 && a.is[i] != 3 && b.is[i] != 3;
    return any;
}

static struct known_value either(struct known_value a, struct known_value b)
{
    for (int i = 0; i < PREDICATES; i++)
        a.is[i] &= b.is[i];
    return a;
}

static void add_switch(struct soup *s, int id, int a)
{
    int p = below(s, PREDICATES);
    struct known_value no = s->known[a], yes = no;
    str_printf(&s->text, "n%d = Switch(%s, p%d)\n", id, s->name[a], p);
    no.is[p] |= 1;
    yes.is[p] |= 2;
    add_value(s, id, 0, no, s->known[a]);
    add_value(s, id, 1, yes, s->known[a]);
}

/* Returns false if both inputs may exist, as either could come first. */
static bool add_merge(struct soup *s, int id, int a, int b)
{
    if (!exclude(s->known[a], s->known[b]))
        return false;
    str_printf(&s->text, "n%d = Merge(%s, %s)\n", id, s->name[a], s->name[b]);
    struct known_value known = either(s->known[a], s->known[b]);
    add_value(s, id, 0, known, known);
    return true;
}

static void add_op(struct soup *s, int id, int a, int b)
{
    static const char *const unary[] = {"Neg", "Tanh", "Identity", "ZerosLike", "Softmax"};
    static const char *const binary[] = {"Add", "Mul", "Maximum"};
    int c = below(s, s->n), kind = below(s, 4);
    struct known_value known = s->known[a];
    const char *colon = strchr(s->name[c], ':');
    str_printf(&s->text, "n%d = ", id);
    if (kind == 0) {
        str_printf(&s->text, "%s(%s)\n", unary[below(s, 5)], s->name[a]);
    } else if (kind == 1 && !colon) {
        str_printf(&s->text, "%s(%s, ^%s)\n", unary[below(s, 5)], s->name[a], s->name[c]);
    } else {
        str_printf(&s->text, "%s(%s, %s)\n", binary[below(s, 3)], s->name[a], s->name[b]);
        known = both(known, s->known[b]);
    }
    add_value(s, id, 0, known, known);
}

static void add_constant(struct soup *s, int id, int a)
{
    if (strchr(s->name[a], ':'))
        return;
    str_printf(&s->text, "n%d = Const(^%s) {dtype=float32, value=[[%d,2]]}\n", id, s->name[a], id);
    add_value(s, id, 0, s->ran[a], s->ran[a]);
}

static void make_soup(struct soup *s)
{
    str_printf(&s->text, X "c0 = Const() {dtype=float32, value=0}\n"
                           "c1 = Const() {dtype=float32, value=1}\n"
                           "row = Const() {dtype=float32, value=[[1,-2]]}\n"
                           "xx = Mul(x, x)\n"
                           "p0 = Greater(x, c0)\n"
                           "p1 = Greater(x, c1)\n"
                           "p2 = Greater(xx, c1)\n"
                           "n0 = Mul(row, x)\n");
    add_value(s, 0, 0, (struct known_value){{0}}, (struct known_value){{0}});
    for (int id = 1; s->n < NODES_MAX - 2; id++) {
        int kind = below(s, 8), a = below(s, s->n), b = below(s, s->n);
        if (kind < 2)
            add_switch(s, id, a);
        else if (kind == 2)
            add_constant(s, id, a);
        else if (kind > 5 || !add_merge(s, id, a, b))
            add_op(s, id, a, b);
    }
}

/* Returns whether the value exists. */
static bool check_value(struct fixture f[2], const char *name, float x, uint64_t seed)
{
    struct tensor feed = tensor_borrow(FLOAT32, &SHAPE_SCALAR, &x), values[2];
    int code[2];
    bool same = true;
    for (int i = 0; i < 2; i++) {
        f[i].err = (struct error)ERROR_INIT;
        code[i] = fixture_run(&f[i], name, "x", &feed, &values[i]);
    }
    same = code[0] == code[1] && !strcmp(f[0].err.text, f[1].err.text) &&
           (code[0] || tensor_equal(&values[0], &values[1]));
    if (!same)
        fail_msg("BRANCHES_SEED=%llu: %s at %g: '%s' and '%s'", (unsigned long long)seed, name,
                 (double)x, f[0].err.text, f[1].err.text);
    for (int i = 0; i < 2 && !code[0]; i++)
        tensor_release(&values[i]);
    return !code[0];
}

static void they_change_no_bit(void **state)
{
    static const float inputs[] = {-3, -0.5F, 0.5F, 3};
    struct seed_range seeds = seeds_of("BRANCHES", 400);
    int n_there = 0, n_dead = 0;
    (void)state;
    for (uint64_t seed = seeds.first, end = seed + (uint64_t)seeds.n; seed < end; seed++) {
        struct soup s = {.random = seed, .text = STR_INIT};
        struct fixture f[2];
        make_soup(&s);
        for (int i = 0; i < 2; i++)
            fixture_open(&f[i], str_text(&s.text), i);
        for (int i = 0; i < 8; i++) {
            int value = s.n - 1 - below(&s, s.n / 2);
            for (size_t k = 0; k < sizeof inputs / sizeof *inputs; k++)
                *(check_value(f, s.name[value], inputs[k], seed) ? &n_there : &n_dead) += 1;
        }
        fixture_close(&f[0]);
        fixture_close(&f[1]);
        str_release(&s.text);
    }
    assert_true(seeds.given || (n_there > 1000 && n_dead > 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_change_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
