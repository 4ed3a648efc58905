/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: random programs of nested conditionals and loops over a few numbers and variables, and
 * their results, by plain recursion. lib/nest_graph.h turns them into graphs.
 */
#ifndef TF_TESTS_LIB_NEST_H
#define TF_TESTS_LIB_NEST_H

#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "lib/unit.h"

#define NEST_LENGTH 3 /* of a vector */

/* What a program works on: float scalars, integers, vectors of floats. Variables are floats. */
enum { NEST_FLOATS = 3, NEST_INTS = 6, NEST_SLOTS = 8, NEST_VARIABLES = 2 };

enum nest_kind {
    NEST_ADD, /* slot = a + b */
    NEST_SUB,
    NEST_MUL,
    NEST_COPY,     /* slot = a */
    NEST_CONSTANT, /* slot = number */
    NEST_COND,     /* a < b ? yes : no */
    NEST_LOOP,     /* for (k = 0; k < limit && a < b; k++) yes; */
    NEST_READ,     /* slot = variable */
    NEST_ASSIGN,   /* variable = a */
    NEST_INCREMENT /* variable += a */
};

struct nest_block {
    struct nest_statement *statements;
    int n;
};

struct nest_statement {
    enum nest_kind kind;
    int slot, a, b, variable;
    int number, limit;
    bool limited; /* NEST_LOOP: a < b is tested, too */
    struct nest_block yes, no;
};

struct nest_state {
    float number[NEST_SLOTS][NEST_LENGTH]; /* a scalar is its first element */
    int32_t whole[NEST_SLOTS];
    float variable[NEST_VARIABLES];
};

static inline int nest_first(int slot) /* slot of the same type */
{
    return slot < NEST_FLOATS ? 0 : slot < NEST_INTS ? NEST_FLOATS : NEST_INTS;
}

static inline int nest_count(int slot)
{
    return slot < NEST_INTS ? NEST_FLOATS : NEST_SLOTS - NEST_INTS;
}

static inline bool nest_is_whole(int slot)
{
    return slot >= NEST_FLOATS && slot < NEST_INTS;
}

/* ---- random programs ---- */

struct nest_maker {
    uint64_t random;
    struct arena *arena;
    int left; /* statements that may still be made */
    bool straight;
};

static inline int nest_pick(struct nest_maker *m, int n)
{
    return (int)(unit_random(&m->random) % (uint64_t)n);
}

static inline struct nest_block nest_make_block(struct nest_maker *m, int depth);

static inline enum nest_kind nest_pick_kind(struct nest_maker *m, int depth)
{
    static const enum nest_kind simple[] = {NEST_ADD,  NEST_SUB,    NEST_MUL,       NEST_COPY,
                                            NEST_READ, NEST_ASSIGN, NEST_INCREMENT, NEST_CONSTANT};
    int n = nest_pick(m, 12);
    if (n < 8 || depth == 0 || m->straight)
        return simple[n % 8];
    return n % 2 ? NEST_COND : NEST_LOOP;
}

static inline void nest_make_statement(struct nest_maker *m, int depth, struct nest_statement *s)
{
    s->kind = nest_pick_kind(m, depth);
    s->slot = nest_pick(m, NEST_SLOTS);
    s->variable = nest_pick(m, NEST_VARIABLES);
    s->number = nest_pick(m, 9) - 4;
    s->limit = nest_pick(m, 4);
    s->limited = nest_pick(m, 3) == 0;
    int of = s->slot;
    if (s->kind == NEST_COND || s->kind == NEST_LOOP)
        of = nest_pick(m, 2) ? 0 : NEST_FLOATS;
    if (s->kind == NEST_READ || s->kind == NEST_ASSIGN || s->kind == NEST_INCREMENT)
        of = s->slot = nest_pick(m, NEST_FLOATS);
    s->a = nest_first(of) + nest_pick(m, nest_count(of));
    s->b = nest_first(of) + nest_pick(m, nest_count(of));
    if (of >= NEST_INTS && nest_pick(m, 2))
        s->b = nest_pick(m, NEST_FLOATS); /* broadcast */
    if (s->kind == NEST_COND || s->kind == NEST_LOOP)
        s->yes = nest_make_block(m, depth - 1);
    if (s->kind == NEST_COND)
        s->no = nest_make_block(m, depth - 1);
}

static inline struct nest_block nest_make_block(struct nest_maker *m, int depth)
{
    struct nest_block block = {.n = 1 + nest_pick(m, 5)};
    if (block.n > m->left)
        block.n = m->left;
    m->left -= block.n;
    block.statements = arena_array(m->arena, (size_t)block.n + 1, sizeof *block.statements);
    for (int i = 0; i < block.n; i++)
        nest_make_statement(m, depth, &block.statements[i]);
    return block;
}

/* One program in eight has no control flow. */
static inline struct nest_block nest_make(uint64_t seed, struct arena *arena)
{
    struct nest_maker m = {.random = seed, .arena = arena, .left = 40};
    m.straight = nest_pick(&m, 8) == 0;
    return nest_make_block(&m, 4);
}

/* ---- what they compute ---- */

static inline float nest_number(const struct nest_state *s, int slot, int i)
{
    return s->number[slot][slot < NEST_INTS ? 0 : i];
}

static inline bool nest_less(const struct nest_state *s, int a, int b)
{
    return nest_is_whole(a) ? s->whole[a] < s->whole[b] : s->number[a][0] < s->number[b][0];
}

static inline void nest_arithmetic(struct nest_state *s, const struct nest_statement *t)
{
    uint32_t m = (uint32_t)s->whole[t->a], n = (uint32_t)s->whole[t->b];
    float result[NEST_LENGTH];
    for (int i = 0; i < NEST_LENGTH; i++) {
        float x = nest_number(s, t->a, i), y = nest_number(s, t->b, i);
        result[i] = t->kind == NEST_ADD ? x + y : t->kind == NEST_SUB ? x - y : x * y;
    }
    memcpy(s->number[t->slot], result, sizeof result);
    if (nest_is_whole(t->slot))
        s->whole[t->slot] = (int32_t)(t->kind == NEST_ADD   ? m + n
                                      : t->kind == NEST_SUB ? m - n
                                                            : m * n);
}

static inline void nest_run(struct nest_state *s, const struct nest_block *block)
{
    for (int i = 0; i < block->n; i++) {
        const struct nest_statement *t = &block->statements[i];
        switch (t->kind) {
        case NEST_COND:
            nest_run(s, nest_less(s, t->a, t->b) ? &t->yes : &t->no);
            break;
        case NEST_LOOP:
            for (int k = 0; k < t->limit && (!t->limited || nest_less(s, t->a, t->b)); k++)
                nest_run(s, &t->yes);
            break;
        case NEST_COPY:
            memmove(s->number[t->slot], s->number[t->a], sizeof s->number[0]);
            s->whole[t->slot] = s->whole[t->a];
            break;
        case NEST_CONSTANT:
            s->whole[t->slot] = t->number;
            for (int e = 0; e < NEST_LENGTH; e++)
                s->number[t->slot][e] = (float)t->number;
            break;
        case NEST_READ:
            s->number[t->slot][0] = s->variable[t->variable];
            break;
        case NEST_ASSIGN:
            s->variable[t->variable] = s->number[t->a][0];
            break;
        case NEST_INCREMENT:
            s->variable[t->variable] += s->number[t->a][0];
            break;
        default:
            nest_arithmetic(s, t);
        }
    }
}

#endif
