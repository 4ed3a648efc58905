/* SPDX-License-Identifier: Apache-2.0
 *
 * One loop per rule and type over the variable, its slots and the gradient. A rule sees scalars as
 * double and computes in the variable's type, of 16 bits in float32.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "exec/device/narrow_private.h"
#include "exec/state/variable.h"
#include "ops/device/form_cpu.h"
#include "ops/math/parallel_cpu.h"

#define SLOTS_MAX 2
#define SCALARS_MAX 6

struct apply_terms {
    char *w, *slot[SLOTS_MAX];
    const char *g;
    double s[SCALARS_MAX]; /* in declared order */
    bool nesterov;
};

typedef void update_loop(const struct apply_terms *u, int64_t begin, int64_t end);

struct apply_row {
    const char *op;
    update_loop *float32, *float64;
};

#define LOOP(name, type, ...)                                                                      \
    static void name(const struct apply_terms *u, int64_t begin, int64_t end)                      \
    {                                                                                              \
        type *restrict w = (type *)u->w, *restrict a = (type *)u->slot[0];                         \
        type *restrict b = (type *)u->slot[1];                                                     \
        const type *restrict g = (const type *)u->g;                                               \
        (void)a;                                                                                   \
        (void)b;                                                                                   \
        __VA_ARGS__                                                                                \
    }
#define EACH for (int64_t i = begin; i < end; i++)
#define S(i) ((REAL)u->s[i])

#define REAL float
#define SQRT sqrtf
#define POW powf
#define FABS fabsf
#define NAME(rule) rule##_float32
#include "ops/train/rules.h"
#undef REAL
#undef SQRT
#undef POW
#undef FABS
#undef NAME

#define REAL double
#define SQRT sqrt
#define POW pow
#define FABS fabs
#define NAME(rule) rule##_float64
#include "ops/train/rules.h"

#define RULE(rule) rule##_float32, rule##_float64
static const struct apply_row rules[] = {
    {"ApplyGradientDescent", RULE(descent)},
    {"ApplyMomentum", RULE(momentum)},
    {"ApplyAdagrad", RULE(adagrad)},
    {"ApplyAdadelta", RULE(adadelta)},
    {"ApplyRMSProp", RULE(rmsprop)},
    {"ApplyAdam", RULE(adam)},
    {"ApplyFtrl", RULE(ftrl)},
};

struct apply {
    update_loop *loop;
    bool nesterov;
};

/* An argument of a rule is a reference (the variable, then its slots), the gradient, or a scalar.
 */
static bool is_gradient(const struct op_arg *arg)
{
    return !strcmp(arg->name, "grad") || !strcmp(arg->name, "delta");
}

/* That the arguments have room in a struct apply_terms. */
static int check_arguments(struct kernel_setup *setup)
{
    const struct op *op = setup->node->op;
    int n_refs = 0, n_scalars = 0;
    for (int i = 0; i < op->n_inputs; i++) {
        n_refs += op->inputs[i].is_ref;
        n_scalars += !op->inputs[i].is_ref && !is_gradient(&op->inputs[i]);
    }
    if (n_refs < 1 || n_refs > 1 + SLOTS_MAX || n_scalars > SCALARS_MAX)
        return kernel_setup_fail(setup, "%s has %d references and %d scalars, more than %d and %d",
                                 op->def->name, n_refs, n_scalars, 1 + SLOTS_MAX, SCALARS_MAX);
    return 0;
}

static int prepare(struct kernel_setup *setup)
{
    const struct apply_row *rule = FORM_FIND(setup, rules);
    if (!rule || check_arguments(setup))
        return setup->err->code;
    struct apply *state = mem_alloc(sizeof *state);
    state->loop = setup->in_types[0].type == FLOAT64 ? rule->float64 : rule->float32;
    state->nesterov =
        node_is(setup->node, "ApplyMomentum") && node_bool(setup->node, "use_nesterov");
    setup->state = state;
    return 0;
}

static int same_shape(struct kernel_call *call, int i)
{
    if (shape_equal(&call->in[0]->shape, &call->in[i]->shape))
        return 0;
    return kernel_fail(call, "var and %s must have the same shape, not %s and %s",
                       call->node->op->inputs[i].name, shape_text(&call->in[0]->shape),
                       shape_text(&call->in[i]->shape));
}

/* Sorts the inputs by kind. References are opened for writing, so that a snapshot keeps its values.
 */
static int collect(struct kernel_call *call, struct apply_terms *u)
{
    int n_refs = 0, n_scalars = 0;
    for (int i = 0; i < call->n_in; i++) {
        const struct op_arg *arg = &call->node->op->inputs[i];
        struct tensor *in = call->in[i];
        if (!arg->is_ref && !is_gradient(arg)) {
            if (tensor_count(in) != 1)
                return kernel_fail(call, "%s must be a scalar, not %s", arg->name,
                                   shape_text(&in->shape));
            u->s[n_scalars++] = tensor_get_float64(in, 0);
            continue;
        }
        if (same_shape(call, i))
            return call->err->code;
        if (!arg->is_ref) {
            u->g = in->data;
            continue;
        }
        struct variable *variable = call->refs[i];
        if (variable_prepare_write(variable, &in->shape, VARIABLE_UPDATE, call->err))
            return call->err->code;
        char *data = variable->value.data;
        if (n_refs++)
            u->slot[n_refs - 2] = data;
        else
            u->w = data;
    }
    return 0;
}

struct apply_work {
    const struct apply_terms *update;
    update_loop *loop;
    enum dtype type;
};

static int run_part(void *context, int64_t begin, int64_t end)
{
    const struct apply_work *part = context;
    part->loop(part->update, begin, end);
    return 0;
}

/* Of 16 bits: a block of the variable, its slots and the gradient is widened, updated by the loop
 * of float32, and goes back to where it lies. */
#define HALF_BLOCK 256

static int run_half_part(void *context, int64_t begin, int64_t end)
{
    const struct apply_work *part = context;
    const struct apply_terms *u = part->update;
    uint16_t *stored[1 + SLOTS_MAX] = {(uint16_t *)(void *)u->w, (uint16_t *)(void *)u->slot[0],
                                       (uint16_t *)(void *)u->slot[1]};
    const uint16_t *gradient = (const uint16_t *)(const void *)u->g;
    float wide[1 + SLOTS_MAX][HALF_BLOCK], g[HALF_BLOCK];
    struct apply_terms block = *u;
    block.w = (char *)wide[0];
    for (int k = 0; k < SLOTS_MAX; k++)
        block.slot[k] = u->slot[k] ? (char *)wide[1 + k] : NULL;
    block.g = (const char *)g;
    for (int64_t at = begin, n; at < end; at += n) {
        n = end - at < HALF_BLOCK ? end - at : HALF_BLOCK;
        widen_array(part->type, gradient + at, g, n);
        for (int k = 0; k <= SLOTS_MAX && stored[k]; k++)
            widen_array(part->type, stored[k] + at, wide[k], n);
        part->loop(&block, 0, n);
        for (int k = 0; k <= SLOTS_MAX && stored[k]; k++)
            narrow_array(part->type, wide[k], stored[k] + at, n);
    }
    return 0;
}

static int run(struct kernel_call *call)
{
    const struct apply *state = call->state;
    struct apply_terms update = {.nesterov = state->nesterov};
    if (collect(call, &update))
        return call->err->code;
    struct apply_work part = {&update, state->loop, call->in[0]->type};
    parallel_for(call->threads, tensor_count(call->in[0]), PARALLEL_GRAIN_MOVE,
                 dtype_bytes(part.type) == 2 ? run_half_part : run_part, &part);
    for (int i = 0; i < call->n_in; i++)
        if (call->refs[i])
            variable_written(call->refs[i]);
    return kernel_alias_output(call, 0, 0, NULL) ? KERNEL_DONE : call->err->code;
}

const struct kernel_code kernel_apply = {.prepare = prepare, .run = run};
