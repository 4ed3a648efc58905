/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels that write variables. The device checks whether the step has already failed; the
 * host does its part in any case. For updates of rows, which happen in any order, an input that is
 * the variable's own memory is copied first.
 */
#include "base/memory.h"
#include "exec/state/variable.h"
#include "ops/array/launchers_cuda.h"
#include "ops/device/kernel_cuda.h"
#include "ops/math/outputs.h"
#include "ops/state/launchers_cuda.h"
#include "ops/state/writes.h"

/* ---- whole variables ---- */

/* Writes the value over the variable's. `fault`: the step's; NULL: write even if it has failed. */
static int write_value(struct kernel_call *call, const struct fault *fault)
{
    const struct tensor *value = call->in[1];
    struct cuda_assign launch = {.op = (enum cuda_assign_op)call->form,
                                 .type = cuda_type_of(value->type),
                                 .n = tensor_count(value),
                                 .from = value->data,
                                 .to = call->refs[0]->value.data,
                                 .fault = fault};
    int code = KERNEL_DONE;
    if (launch.n)
        code = cuda_launched(call, cuda_assign(&launch, cuda_compute(call)));
    return code > 0 ? code : assign_finish(call, code);
}

/* New memory of the variable is filled even in a step that has failed. */
static int assign_run(struct kernel_call *call)
{
    struct variable *variable = call->refs[0];
    const void *before = variable->value.data;
    if (assign_itself(call))
        return assign_finish(call, KERNEL_DONE);
    if (variable_prepare_write(variable, &call->in[1]->shape, assign_how(call), call->err))
        return call->err->code;
    bool is_kept = variable->value.data == before;
    return write_value(call, is_kept ? cuda_step_fault(call) : NULL);
}

static int update_run(struct kernel_call *call)
{
    return assign_begin_update(call) ? write_value(call, cuda_step_fault(call)) : call->err->code;
}

const struct kernel_code kernel_cuda_assign = {
    .prepare = assign_prepare, .run = assign_run, .form = CUDA_ASSIGN};
const struct kernel_code kernel_cuda_assign_add = {.run = update_run, .form = CUDA_ASSIGN_ADD};
const struct kernel_code kernel_cuda_assign_sub = {.run = update_run, .form = CUDA_ASSIGN_SUB};

/* ---- CountUpTo ---- */

static int count_run(struct kernel_call *call)
{
    struct variable *variable = call->refs[0];
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out || variable_prepare_write(variable, &SHAPE_SCALAR, VARIABLE_UPDATE, call->err))
        return call->err->code;
    struct cuda_count_up_to launch = {.type = cuda_type_of(out->type),
                                      .limit = *(const int64_t *)call->state,
                                      .value = variable->value.data,
                                      .out = out->data,
                                      .fault = cuda_fault_of(call, 0)};
    int code = cuda_launched(call, cuda_count_up_to(&launch, cuda_compute(call)));
    if (code == KERNEL_ENQUEUED)
        variable_written(variable);
    return code;
}

const struct kernel_code kernel_cuda_count_up_to = {.prepare = count_up_to_prepare,
                                                    .run = count_run};

/* ---- rows ---- */

static int prepare(struct kernel_setup *setup)
{
    const struct node_output *in = setup->in_types;
    if (!setup->shapes_known)
        return 0;
    setup->scratch_bytes = ALIGN_UP(cuda_scatter_scratch(shape_count(&in[1].shape)));
    for (int i = 1; i < 3; i++)
        /* Only an input of the same type and size can be the variable's memory. */
        if (in[i].type == in[0].type && shape_count(&in[i].shape) == shape_count(&in[0].shape))
            setup->scratch_bytes += ALIGN_UP((size_t)shape_bytes(&in[i].shape, in[i].type));
    return 0;
}

static bool is_variable(const struct kernel_call *call, int i)
{
    const struct tensor *in = call->in[i];
    return tensor_count(in) && in->data == call->refs[0]->value.data;
}

/* Finds the input's memory, or copies it to *scratch, which is then advanced. */
static int read_input(struct kernel_call *call, int i, char **scratch, const void **data)
{
    const struct tensor *in = call->in[i];
    *data = in->data;
    if (!is_variable(call, i))
        return KERNEL_ENQUEUED;
    struct cuda_assign copy = {.op = CUDA_ASSIGN,
                               .type = cuda_type_of(in->type),
                               .n = tensor_count(in),
                               .from = in->data,
                               .to = *scratch};
    *data = *scratch;
    *scratch += ALIGN_UP(tensor_bytes(in));
    return cuda_launched(call, cuda_assign(&copy, cuda_compute(call)));
}

static int write_rows(struct kernel_call *call)
{
    const struct tensor *value = &call->refs[0]->value;
    const struct tensor *indices = call->in[1], *updates = call->in[2];
    size_t own = ALIGN_UP(cuda_scatter_scratch(tensor_count(indices))), bytes = own;
    for (int i = 1; i < 3; i++)
        if (is_variable(call, i))
            bytes += ALIGN_UP(tensor_bytes(call->in[i]));
    char *scratch = cuda_scratch(call, bytes);
    if (!scratch)
        return call->err->code;
    struct cuda_scatter launch = {
        .op = (enum cuda_scatter_op)call->form,
        .table = value->data,
        .type = cuda_type_of(updates->type),
        .rows = value->shape.dims[0],
        .columns = tensor_count(updates) / tensor_count(indices),
        .indices = {.type = cuda_type_of(indices->type), .n = tensor_count(indices)},
        .fault = cuda_fault_of(call, 1),
        .scratch = scratch};
    scratch += own;
    int code = read_input(call, 1, &scratch, &launch.indices.data);
    if (code == KERNEL_ENQUEUED)
        code = read_input(call, 2, &scratch, &launch.values);
    if (code == KERNEL_ENQUEUED)
        code = cuda_launched(call, cuda_scatter(&launch, cuda_compute(call)));
    return code;
}

static int run(struct kernel_call *call)
{
    struct variable *variable = call->refs[0];
    struct shape shape;
    int code = KERNEL_DONE;
    if (result_shapes(call, 0, 0, &shape) ||
        variable_prepare_write(variable, &shape, VARIABLE_UPDATE, call->err))
        return call->err->code;
    if (tensor_count(call->in[1]))
        code = write_rows(call);
    return code > 0 ? code : assign_finish(call, code);
}

const struct kernel_code kernel_cuda_scatter_add = {
    .prepare = prepare, .run = run, .form = CUDA_SCATTER_ADD};
const struct kernel_code kernel_cuda_scatter_sub = {
    .prepare = prepare, .run = run, .form = CUDA_SCATTER_SUB};
const struct kernel_code kernel_cuda_scatter_update = {
    .prepare = prepare, .run = run, .form = CUDA_SCATTER_SET};
