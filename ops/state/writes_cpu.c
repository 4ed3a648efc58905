/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing variables. The executor gives the kernel exclusive access to the variable.
 */
#include <string.h>

#include "exec/device/step_block.h"
#include "exec/state/variable.h"
#include "ops/array/results.h"
#include "ops/array/rows.h"
#include "ops/math/accumulate.h"
#include "ops/math/outputs.h"
#include "ops/math/parallel_cpu.h"
#include "ops/state/writes.h"

#define COPY_GRAIN (1 << 17) /* bytes that are worth a thread */

/* ---- Assign ---- */

struct copy {
    char *to;
    const char *from;
};

static int copy_part(void *context, int64_t begin, int64_t end)
{
    const struct copy *copy = context;
    memcpy(copy->to + begin, copy->from + begin, (size_t)(end - begin));
    return 0;
}

/* Makes a value the variable's without a copy: other holders only read it, and a writer of the
 * variable moves away from it. False: it must be copied. */
static bool move_value(struct kernel_call *call, enum variable_write how, int *code)
{
    struct variable *variable = call->refs[0];
    struct tensor value;
    if (!variable_may_take_memory(variable, call->in[1]) || !kernel_share_input(call, 1, &value))
        return false;
    *code = variable_take_memory(variable, &value, how, call->err);
    if (*code)
        tensor_release(&value);
    return true;
}

static int assign_run(struct kernel_call *call)
{
    struct variable *variable = call->refs[0];
    const struct tensor *value = call->in[1];
    enum variable_write how = assign_how(call);
    int code;
    if (assign_itself(call))
        return assign_finish(call, KERNEL_DONE);
    if (move_value(call, how, &code))
        return code ? code : assign_finish(call, KERNEL_DONE);
    if (variable_prepare_write(variable, &value->shape, how, call->err))
        return call->err->code;
    struct copy copy = {variable->value.data, value->data};
    parallel_for(call->threads, (int64_t)tensor_bytes(value), COPY_GRAIN, copy_part, &copy);
    return assign_finish(call, KERNEL_DONE);
}

const struct kernel_code kernel_assign = {.prepare = assign_prepare, .run = assign_run};

/* ---- AssignAdd, AssignSub ---- */

struct assign_work {
    accumulate_loop *loop;
    char *to;
    const char *from;
    size_t item;
};

static int update_part(void *context, int64_t begin, int64_t end)
{
    const struct assign_work *u = context;
    size_t offset = (size_t)begin * u->item;
    u->loop(u->to + offset, u->from + offset, end - begin);
    return 0;
}

static int update_run(struct kernel_call *call)
{
    const struct tensor *value = call->in[1];
    struct variable *variable = assign_begin_update(call);
    if (!variable)
        return call->err->code;
    accumulate_loop *loop =
        call->form == ROWS_ADD ? accumulate_add(value->type) : accumulate_subtract(value->type);
    struct assign_work update = {loop, variable->value.data, value->data, dtype_bytes(value->type)};
    parallel_for(call->threads, tensor_count(value), PARALLEL_GRAIN_MOVE, update_part, &update);
    return assign_finish(call, KERNEL_DONE);
}

const struct kernel_code kernel_assign_add = {.run = update_run, .form = ROWS_ADD};
const struct kernel_code kernel_assign_sub = {.run = update_run, .form = ROWS_SUB};

/* ---- CountUpTo ---- */

static int count_run(struct kernel_call *call)
{
    struct variable *variable = call->refs[0];
    int64_t limit = *(const int64_t *)call->state;
    struct tensor *out = result_outputs(call, 0, 0);
    if (!out)
        return call->err->code;
    int64_t value = tensor_get_int64(&variable->value, 0);
    if (value >= limit)
        return kernel_fault(call, &(struct fault){.code = FAULT_LIMIT, .limit = limit});
    if (variable_prepare_write(variable, &SHAPE_SCALAR, VARIABLE_UPDATE, call->err))
        return call->err->code;
    tensor_set_int64(out, 0, value);
    tensor_set_int64(&variable->value, 0, value + 1);
    variable_written(variable);
    return KERNEL_DONE;
}

const struct kernel_code kernel_count_up_to = {.prepare = count_up_to_prepare, .run = count_run};

/* ---- rows ---- */

/* Reads input i; copies it if it is the variable's own memory, whose rows change one by one. */
static int read_input(struct kernel_call *call, int i, struct tensor *t)
{
    *t = *call->in[i];
    size_t bytes = tensor_bytes(t);
    if (!bytes || t->data != call->refs[0]->value.data)
        return 0;
    void *copy = kernel_temporary(call, bytes);
    if (!copy)
        return call->err->code;
    memcpy(copy, t->data, bytes);
    *t = tensor_borrow(t->type, &t->shape, copy);
    return 0;
}

static int run(struct kernel_call *call)
{
    struct variable *variable = call->refs[0];
    struct shape shape;
    struct tensor indices, updates;
    if (result_shapes(call, 0, 0, &shape) || rows_check(call, 1, shape.dims[0]) ||
        variable_prepare_write(variable, &shape, VARIABLE_UPDATE, call->err) ||
        read_input(call, 1, &indices) || read_input(call, 2, &updates))
        return call->err->code;
    int code = rows_update(call, (enum rows_op)call->form, &variable->value, &indices, &updates);
    if (code)
        return code;
    return assign_finish(call, KERNEL_DONE);
}

const struct kernel_code kernel_scatter_add = {.run = run, .form = ROWS_ADD};
const struct kernel_code kernel_scatter_sub = {.run = run, .form = ROWS_SUB};
const struct kernel_code kernel_scatter_update = {.run = run, .form = ROWS_SET};
