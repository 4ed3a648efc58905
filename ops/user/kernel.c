/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of custom ops: how they see a call of the executor.
 */
#include <string.h>

#include "exec/plan/plan.h"
#include "ops/user/internal.h"

static int prepare(struct kernel_setup *setup)
{
    const struct kernel_code *code = setup->row->own;
    setup->state = (void *)(uintptr_t)CONTAINER_OF(code, struct user_code, code)->kernel;
    return 0;
}

/* The kernel belongs to the object. */
static void release(void *state)
{
    (void)state;
}

#define FEW_OUTPUTS 16

static int run(struct kernel_call *call)
{
    const struct tf_op_kernel *kernel = call->state;
    bool few[FEW_OUTPUTS] = {false}, *made = few;
    if (call->n_out > FEW_OUTPUTS) {
        if (!(made = kernel_temporary(call, (size_t)call->n_out * sizeof *made)))
            return call->err->code;
        memset(made, 0, (size_t)call->n_out * sizeof *made);
    }
    struct tf_kernel handle = {&user_functions, {&user_functions, call->node}, call, made};
    if (kernel->run(&handle) || call->err->code)
        return user_kernel_fail(&handle, NULL);
    for (int i = 0; i < call->n_out; i++)
        if (!made[i])
            return kernel_fail(call, "its kernel makes no output %d", i);
    return KERNEL_DONE;
}

const struct kernel_code user_kernel_code = {.prepare = prepare, .run = run, .release = release};

const tf_node *user_kernel_node(const tf_kernel *kernel)
{
    return &kernel->node;
}

int user_kernel_inputs(const tf_kernel *kernel)
{
    return kernel->call->n_in;
}

int user_kernel_outputs(const tf_kernel *kernel)
{
    return kernel->call->n_out;
}

/* Returns an input; NULL: there is no such input. */
static const struct tensor *kernel_input(const tf_kernel *kernel, int input)
{
    return input >= 0 && input < kernel->call->n_in ? kernel->call->in[input] : NULL;
}

enum tf_type user_kernel_type(const tf_kernel *kernel, int input)
{
    const struct tensor *in = kernel_input(kernel, input);
    return in ? (enum tf_type)in->type : TF_INVALID;
}

void user_kernel_shape(const tf_kernel *kernel, int input, struct tf_shape *shape)
{
    const struct tensor *in = kernel_input(kernel, input);
    *shape = user_shape_out(in ? &in->shape : &SHAPE_ANY);
}

int64_t user_kernel_count(const tf_kernel *kernel, int input)
{
    const struct tensor *in = kernel_input(kernel, input);
    return in ? tensor_count(in) : 0;
}

const void *user_kernel_data(const tf_kernel *kernel, int input)
{
    const struct tensor *in = kernel_input(kernel, input);
    return in && in->type != STRING ? in->data : NULL;
}

const char *user_kernel_string(const tf_kernel *kernel, int input, int64_t element, size_t *length)
{
    const struct tensor *in = kernel_input(kernel, input);
    const char *text = NULL;
    *length = 0;
    if (in && in->type == STRING && element >= 0 && element < tensor_count(in))
        tensor_string(in, element, &text, length);
    return text;
}

static const struct node_output *kernel_output(const tf_kernel *kernel, int output)
{
    const struct kernel_call *call = kernel->call;
    return output >= 0 && output < call->n_out ? &call->node->outputs[output] : NULL;
}

enum tf_type user_kernel_output_type(const tf_kernel *kernel, int output)
{
    const struct node_output *out = kernel_output(kernel, output);
    return out ? (enum tf_type)out->type : TF_INVALID;
}

/* Returns whether an output can be made this way; if not, the call has failed. */
static bool may_make(tf_kernel *kernel, int output, const struct tf_shape *shape, bool is_strings,
                     struct shape *own)
{
    const struct node_output *out = kernel_output(kernel, output);
    if (kernel->call->err->code)
        return false;
    if (!out || (out->type == STRING) != is_strings)
        kernel_fail(kernel->call, "its kernel makes an output %d of %s, which it does not have",
                    output, is_strings ? "strings" : "numbers");
    else if (kernel->made[output])
        kernel_fail(kernel->call, "its kernel makes output %d twice", output);
    else if (!user_shape_in(shape, true, own))
        kernel_fail(kernel->call, "its kernel gives output %d what is no shape", output);
    else if (!shape_compatible(&out->shape, own))
        kernel_fail(kernel->call, "output %d is %s, but its kernel makes %s", output,
                    shape_text(&out->shape), shape_text(own));
    return !kernel->call->err->code;
}

void *user_kernel_output(tf_kernel *kernel, int output, const struct tf_shape *shape)
{
    struct shape own;
    if (!may_make(kernel, output, shape, false, &own))
        return NULL;
    struct tensor *made = kernel_alloc_output(kernel->call, output, &own);
    if (!made)
        return NULL;
    kernel->made[output] = true;
    return made->data;
}

int user_kernel_output_strings(tf_kernel *kernel, int output, const struct tf_shape *shape,
                               const char *const *texts, const size_t *lengths)
{
    struct tensor value = TENSOR_INIT;
    struct shape own;
    if (!may_make(kernel, output, shape, true, &own) ||
        tensor_from_strings(&value, &own, texts, lengths, kernel->call->err))
        return kernel->call->err->code;
    if (kernel_share_output(kernel->call, output, &value))
        kernel->made[output] = true;
    tensor_release(&value);
    return kernel->call->err->code;
}

void *user_kernel_temporary(tf_kernel *kernel, size_t bytes)
{
    return kernel->call->err->code ? NULL : kernel_temporary(kernel->call, bytes);
}

int user_kernel_threads(const tf_kernel *kernel)
{
    return kernel->call->threads;
}

int64_t user_kernel_step(const tf_kernel *kernel)
{
    const struct step *step = kernel->call->step;
    return step ? step->number : 0;
}

int user_kernel_fail(tf_kernel *kernel, const char *text)
{
    struct kernel_call *call = kernel->call;
    if (call->err->code)
        return call->err->code;
    return kernel_fail(call, "%s", text ? text : "its kernel failed");
}
