/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of element-wise ops: of one tensor, of two, Cast and Select.
 */
#include "ops/math/launchers_cuda.h"

#include "base/memory.h"
#include "ops/device/kernel_cuda.h"
#include "ops/math/outputs.h"

/* ---- of one ---- */

static int unary_prepare(struct kernel_setup *setup)
{
    cuda_unary_launcher **launcher = setup->state = mem_alloc(sizeof *launcher);
    *launcher = cuda_unary(setup->node->op->def->name, cuda_type_of(setup->in_types[0].type));
    kernel_offer_reuse(setup, 0);
    return 0;
}

static int unary_run(struct kernel_call *call)
{
    cuda_unary_launcher *const *launcher = call->state;
    const struct tensor *x = call->in[0];
    struct tensor *y = kernel_alloc_output(call, 0, &x->shape);
    if (!y)
        return call->err->code;
    struct cuda_unary launch = {.n = tensor_count(x), .x = x->data, .y = y->data};
    return cuda_launched(call, (*launcher)(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_unary = {.prepare = unary_prepare, .run = unary_run};

/* ---- of two ---- */

static int binary_prepare(struct kernel_setup *setup)
{
    cuda_binary_launcher **launcher = setup->state = mem_alloc(sizeof *launcher);
    *launcher = cuda_binary(setup->node->op->def->name, cuda_type_of(setup->in_types[0].type));
    kernel_offer_reuse(setup, 0);
    kernel_offer_reuse(setup, 1);
    return 0;
}

static int binary_run(struct kernel_call *call)
{
    cuda_binary_launcher *const *launcher = call->state;
    const struct tensor *x = call->in[0], *y = call->in[1];
    struct cuda_binary launch = {.x = x->data, .y = y->data, .fault = cuda_fault_of(call, 0)};
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out)
        return call->err->code;
    broadcast_plan(&launch.walk, &out->shape, (const struct shape *const[]){&x->shape, &y->shape},
                   2);
    launch.out = out->data;
    return cuda_launched(call, (*launcher)(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_binary = {.prepare = binary_prepare, .run = binary_run};

/* ---- Cast ---- */

static int cast_prepare(struct kernel_setup *setup)
{
    if (setup->in_types[0].type == setup->out_types[0].type)
        setup->out[0].forward = FORWARD_ALIAS;
    return 0;
}

static int cast_run(struct kernel_call *call)
{
    const struct tensor *x = call->in[0];
    if (x->type == call->node->outputs[0].type)
        return kernel_alias_output(call, 0, 0, NULL) ? KERNEL_DONE : call->err->code;
    struct tensor *y = kernel_alloc_output(call, 0, &x->shape);
    if (!y)
        return call->err->code;
    struct cuda_cast launch = {.from = cuda_type_of(x->type),
                               .to = cuda_type_of(y->type),
                               .n = tensor_count(x),
                               .x = x->data,
                               .y = y->data};
    return cuda_launched(call, cuda_cast(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_cast = {.prepare = cast_prepare, .run = cast_run};

/* ---- Select ---- */

static int select_prepare(struct kernel_setup *setup)
{
    kernel_offer_reuse(setup, 1);
    kernel_offer_reuse(setup, 2);
    return 0;
}

static int select_run(struct kernel_call *call)
{
    const struct tensor *condition = call->in[0], *t = call->in[1], *e = call->in[2];
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out)
        return call->err->code;
    struct cuda_select launch = {.element_bytes = (int)dtype_bytes(out->type),
                                 .condition = condition->data,
                                 .t = t->data,
                                 .e = e->data,
                                 .out = out->data};
    broadcast_plan_select(&launch.walk, &out->shape, &condition->shape, &t->shape, &e->shape);
    return cuda_launched(call, cuda_select(&launch, cuda_compute(call)));
}

const struct kernel_code kernel_cuda_select = {.prepare = select_prepare, .run = select_run};
