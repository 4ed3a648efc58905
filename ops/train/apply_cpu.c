/* SPDX-License-Identifier: Apache-2.0
 *
 * One loop per rule and type over the variable, its slots and the gradient. A rule computes in the
 * variable's type, 16-bit types in float32; scalars have the variable's type, too.
 */
#include <math.h>

#include "base/memory.h"
#include "ops/device/blas_cpu.h"
#include "ops/device/form_cpu.h"
#include "ops/math/outputs.h"
#include "ops/math/parallel_cpu.h"
#include "ops/matrix/product.h"
#include "ops/train/apply.h"
#include "tensor/narrow_private.h"

typedef void update_loop(const struct apply_arguments *u, int64_t begin, int64_t end);

struct apply_row {
    const char *op;
    update_loop *float32, *float64;
};

#define LOOP(name, type, ...)                                                                      \
    static void name(const struct apply_arguments *u, int64_t begin, int64_t end)                  \
    {                                                                                              \
        type *restrict w = (type *)u->w, *restrict a = (type *)u->slots[0];                        \
        type *restrict b = (type *)u->slots[1];                                                    \
        const type *restrict g = (const type *)u->g;                                               \
        (void)a;                                                                                   \
        (void)b;                                                                                   \
        __VA_ARGS__                                                                                \
    }
#define EACH for (int64_t i = begin; i < end; i++)
#define S(i) (*(const REAL *)u->scalars[i])

#define NAME(rule) rule##_float32
#include "ops/train/rules.h"
#undef NAME

#define REAL_IS_DOUBLE
#define NAME(rule) rule##_float64
#include "ops/train/rules.h"

#define ROW(op, rule) {#op, rule##_float32, rule##_float64},
static const struct apply_row rules[] = {RULES(ROW)};

struct apply {
    update_loop *loop;
    struct apply_inputs inputs;
    struct product_flags flags; /* of a gradient that is a product */
};

static int prepare(struct kernel_setup *setup)
{
    struct apply *state = setup->state = mem_alloc(sizeof *state);
    if (apply_find_inputs(setup, &state->inputs))
        return setup->err->code;
    const struct apply_row *rule = FORM_FIND_OP(setup, state->inputs.rule, rules);
    if (!rule)
        return setup->err->code;
    state->loop = setup->in_types[0].type == FLOAT64 ? rule->float64 : rule->float32;
    return 0;
}

struct apply_work {
    const struct apply_arguments *update;
    update_loop *loop;
    enum dtype type;
};

static int run_part(void *context, int64_t begin, int64_t end)
{
    const struct apply_work *part = context;
    part->loop(part->update, begin, end);
    return 0;
}

/* Returns the address after the first `elements`. */
static void *skip(void *data, int64_t elements, enum dtype type)
{
    return data ? (char *)data + elements * (int64_t)dtype_bytes(type) : NULL;
}

/* Returns the arguments for elements from `at` on, with a gradient that begins there. */
static struct apply_arguments from_element(const struct apply_arguments *u, int64_t at,
                                           const void *gradient, enum dtype type)
{
    struct apply_arguments rest = *u;
    rest.w = skip(u->w, at, type);
    for (int k = 0; k < APPLY_SLOTS_MAX; k++)
        rest.slots[k] = skip(u->slots[k], at, type);
    rest.g = gradient;
    return rest;
}

/* Widens a gradient of 16 bits, a block at a time. If they have 16 bits, too, the variable and its
 * slots are widened, updated by the loop of float32, and narrowed again in place. */
#define HALF_BLOCK 256

static int run_widened_part(void *context, int64_t begin, int64_t end)
{
    const struct apply_work *part = context;
    const uint16_t *gradient = part->update->g;
    struct apply_arguments u = *part->update;
    bool is_narrow = dtype_bytes(part->type) == 2;
    float wide[1 + APPLY_SLOTS_MAX][HALF_BLOCK], g[HALF_BLOCK], scalars[APPLY_SCALARS_MAX];
    for (int k = 0; is_narrow && k < APPLY_SCALARS_MAX && u.scalars[k]; k++) {
        widen_array(part->type, u.scalars[k], &scalars[k], 1);
        u.scalars[k] = &scalars[k];
    }
    for (int64_t at = begin, n; at < end; at += n) {
        n = end - at < HALF_BLOCK ? end - at : HALF_BLOCK;
        struct apply_arguments block = from_element(&u, at, g, part->type);
        void **places[1 + APPLY_SLOTS_MAX] = {&block.w, &block.slots[0], &block.slots[1]};
        void *stored[1 + APPLY_SLOTS_MAX];
        widen_array(u.g_type, gradient + at, g, n);
        for (int k = 0; is_narrow && k <= APPLY_SLOTS_MAX && *places[k]; k++) {
            stored[k] = *places[k];
            widen_array(part->type, stored[k], wide[k], n);
            *places[k] = wide[k];
        }
        part->loop(&block, 0, n);
        for (int k = 0; is_narrow && k <= APPLY_SLOTS_MAX && *places[k]; k++)
            narrow_array(part->type, wide[k], stored[k], n);
    }
    return 0;
}

static parallel_body *body_of(const struct apply_work *part)
{
    bool is_wide = dtype_bytes(part->type) > 2 && part->update->g_type == part->type;
    return is_wide ? run_part : run_widened_part;
}

/* Several variables, whose elements are numbered consecutively. */
struct joined_work {
    struct apply_work part;
    const struct apply_arguments *updates;
    int n;
};

static int run_joined_part(void *context, int64_t begin, int64_t end)
{
    const struct joined_work *work = context;
    struct apply_work part = work->part;
    for (int i = 0; i < work->n && end > 0; i++) {
        int64_t n = work->updates[i].n;
        part.update = &work->updates[i];
        if (begin < n)
            body_of (&part)(&part, begin > 0 ? begin : 0, end < n ? end : n);
        begin -= n;
        end -= n;
    }
    return 0;
}

static int run(struct kernel_call *call)
{
    const struct apply *state = call->state;
    struct apply_arguments updates[APPLY_BATCH_MAX];
    int n = state->inputs.n;
    if (apply_open(call, &state->inputs))
        return call->err->code;
    for (int first = 0; first < n; first += APPLY_BATCH_MAX) {
        struct joined_work work = {{NULL, state->loop, call->in[0]->type},
                                   updates,
                                   n - first < APPLY_BATCH_MAX ? n - first : APPLY_BATCH_MAX};
        int64_t all = 0;
        apply_collect(call, &state->inputs, first, work.n, updates);
        for (int i = 0; i < work.n; i++)
            all += updates[i].n;
        parallel_for(call->threads, all, PARALLEL_GRAIN_MOVE, run_joined_part, &work);
    }
    return apply_finish(call, KERNEL_DONE);
}

const struct kernel_code kernel_apply = {.prepare = prepare, .run = run};
const struct kernel_code kernel_fused_apply = {.prepare = prepare, .run = run};

/* ---- by a gradient that is a product ---- */

/* Elements of the gradient that a thread computes at a time, which then stay in its second-level
 * cache, or in the first-level cache if the library need not repack operands. */
#define TILE (1 << 16)
#define OUTER_TILE (1 << 12)

static int prepare_product(struct kernel_setup *setup)
{
    if (prepare(setup))
        return setup->err->code;
    ((struct apply *)setup->state)->flags =
        product_flags_of(setup->node, "transpose_a", "transpose_b");
    return 0;
}

struct product_work {
    const struct apply_arguments *update;
    update_loop *loop;
    const struct gemm *product;
    const void *a, *b;
    char *tiles;  /* of each member */
    int64_t rows; /* of a tile: depends only on the shape */
    bool failed;
};

static void update_tiles(void *context, int member, int members)
{
    struct product_work *work = context;
    const struct gemm *g = work->product;
    int64_t n_tiles = (g->m + work->rows - 1) / work->rows;
    char *tile = skip(work->tiles, member * work->rows * g->n, g->type);
    for (int64_t i = n_tiles * member / members; i < n_tiles * (member + 1) / members; i++) {
        int64_t row = i * work->rows, left = g->m - row;
        int64_t n = left < work->rows ? left : work->rows;
        struct apply_arguments update = from_element(work->update, row * g->n, tile, g->type);
        if (!gemm_rows(g, work->a, work->b, row, n, tile))
            __atomic_store_n(&work->failed, true, __ATOMIC_RELAXED);
        else
            work->loop(&update, 0, n * g->n);
    }
}

static int run_tiles(struct kernel_call *call, struct apply_arguments *update,
                     const struct gemm *product)
{
    const struct apply *state = call->state;
    struct product_work work = {.update = update,
                                .loop = state->loop,
                                .product = product,
                                .a = call->in[call->n_in - 2]->data,
                                .b = call->in[call->n_in - 1]->data,
                                .rows = (product->k == 1 ? OUTER_TILE : TILE) / product->n + 1};
    int64_t useful = update->n * product->k / PARALLEL_WORTH(GEMM_GRAIN) + 1;
    int threads = useful < call->threads ? (int)useful : call->threads;
    bool has_tiles = gemm_has_rows(product) && work.rows < product->m;
    int64_t room = has_tiles ? threads * work.rows * product->n : update->n;
    void *gradient = kernel_temporary(call, (size_t)room * dtype_bytes(product->type));
    if (!gradient)
        return call->err->code;
    if (!has_tiles) {
        struct apply_work part = {update, state->loop, product->type};
        if (gemm_run(product, work.a, work.b, gradient, call->threads, call->err))
            return call->err->code;
        update->g = gradient;
        return parallel_for(call->threads, update->n, PARALLEL_GRAIN_MOVE, run_part, &part);
    }
    work.tiles = gradient;
    cpu_set_team(1);
    team_run(threads, update_tiles, &work);
    return work.failed ? kernel_fail(call, "the library of products failed") : KERNEL_DONE;
}

static int run_product(struct kernel_call *call)
{
    const struct apply *state = call->state;
    struct shape shape;
    struct apply_arguments update;
    int left = call->n_in - 2, code = KERNEL_DONE;
    if ((!call->shapes_known && result_shapes(call, 0, 0, &shape)) ||
        apply_open(call, &state->inputs))
        return call->err->code;
    struct product_sizes sizes =
        product_sizes_of(&state->flags, &call->in[left]->shape, &call->in[left + 1]->shape);
    apply_collect(call, &state->inputs, 0, 1, &update);
    struct gemm product = {.type = call->in[0]->type,
                           .transpose_a = state->flags.transpose_a,
                           .transpose_b = state->flags.transpose_b,
                           .m = sizes.m,
                           .n = sizes.n,
                           .k = sizes.k};
    if (update.n)
        code = run_tiles(call, &update, &product);
    return code ? code : apply_finish(call, KERNEL_DONE);
}

const struct kernel_code kernel_product_apply = {.prepare = prepare_product, .run = run_product};
