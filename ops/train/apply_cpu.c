/* SPDX-License-Identifier: Apache-2.0
 *
 * One loop per rule and type over the variable, its slots and the gradient. A rule sees scalars as
 * double and computes in the variable's type.
 */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "exec/device/kernel.h"
#include "exec/state/variable.h"
#include "ops/math/parallel_cpu.h"

#define SCALARS_MAX 6

/* The argument order of each op is a list of kinds: r a reference, s a scalar, g the gradient. */
struct update {
    char *w, *slot[2];
    const char *g;
    double s[SCALARS_MAX]; /* in declared order */
    bool nesterov;
};

typedef void update_loop(const struct update *u, int64_t begin, int64_t end);

struct rule {
    const char *op, *arguments;
    update_loop *float32, *float64;
};

#define LOOP(name, type, ...)                                                                      \
    static void name(const struct update *u, int64_t begin, int64_t end)                           \
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
#include "ops/train/rules_cpu.h"
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
#include "ops/train/rules_cpu.h"

#define RULE(rule) rule##_float32, rule##_float64
static const struct rule rules[] = {
    {"ApplyGradientDescent", "rsg", RULE(descent)}, {"ApplyMomentum", "rrsgs", RULE(momentum)},
    {"ApplyAdagrad", "rrsg", RULE(adagrad)},        {"ApplyAdadelta", "rrrsssg", RULE(adadelta)},
    {"ApplyRMSProp", "rrrssssg", RULE(rmsprop)},    {"ApplyAdam", "rrrssssssg", RULE(adam)},
    {"ApplyFtrl", "rrrgssss", RULE(ftrl)},
};

struct apply {
    const struct rule *rule;
    update_loop *loop;
    bool nesterov;
};

static int prepare(struct kernel_setup *setup)
{
    struct apply *state = mem_alloc(sizeof *state);
    size_t i = 0;
    while (strcmp(rules[i].op, setup->node->op->def->name))
        i++;
    state->rule = &rules[i];
    state->loop = setup->in_types[0].type == FLOAT32 ? rules[i].float32 : rules[i].float64;
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
static int collect(struct kernel_call *call, const char *arguments, struct update *u)
{
    int n_refs = 0, n_scalars = 0;
    for (int i = 0; arguments[i]; i++) {
        struct tensor *in = call->in[i];
        if (arguments[i] == 's') {
            if (tensor_count(in) != 1)
                return kernel_fail(call, "%s must be a scalar, not %s",
                                   call->node->op->inputs[i].name, shape_text(&in->shape));
            u->s[n_scalars++] = tensor_get_float64(in, 0);
            continue;
        }
        if (same_shape(call, i))
            return call->err->code;
        if (arguments[i] == 'g') {
            u->g = in->data;
            continue;
        }
        struct variable *variable = call->refs[i];
        if (variable_prepare_write(variable, &in->shape, false, call->err))
            return call->err->code;
        char *data = variable->value.data;
        if (n_refs++)
            u->slot[n_refs - 2] = data;
        else
            u->w = data;
    }
    return 0;
}

struct part {
    const struct update *update;
    update_loop *loop;
};

static int run_part(void *context, int64_t begin, int64_t end)
{
    const struct part *part = context;
    part->loop(part->update, begin, end);
    return 0;
}

static int run(struct kernel_call *call)
{
    const struct apply *state = call->state;
    struct update update = {.nesterov = state->nesterov};
    if (collect(call, state->rule->arguments, &update))
        return call->err->code;
    struct part part = {&update, state->loop};
    parallel_for(call->threads, tensor_count(call->in[0]), PARALLEL_GRAIN_MOVE, run_part, &part);
    for (int i = 0; state->rule->arguments[i] == 'r'; i++)
        variable_written(call->refs[i]);
    return kernel_alias_output(call, 0, 0, NULL) ? KERNEL_DONE : call->err->code;
}

const struct kernel_code kernel_apply = {.prepare = prepare, .run = run};
