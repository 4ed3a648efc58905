/* SPDX-License-Identifier: Apache-2.0
 *
 * Stacks are resources of the step. A pushed element shares its memory if that is
 * reference-counted, else it is copied; a popped element is shared, too.
 */
#include "base/memory.h"
#include "base/vec.h"
#include "exec/device/kernel.h"
#include "exec/step/step.h"

struct stack {
    pthread_mutex_t lock; /* guards elements: iterations push and pop from any thread */
    VEC(struct tensor) elements;
};

static void stack_free(void *object)
{
    struct stack *stack = object;
    vec_each(element, &stack->elements)
        tensor_release(element);
    vec_release(&stack->elements);
    pthread_mutex_destroy(&stack->lock);
    mem_free(stack);
}

static int stack_run(struct kernel_call *call)
{
    struct tensor *out = kernel_alloc_output(call, 0, &SHAPE_SCALAR);
    if (!out)
        return call->err->code;
    struct stack *stack = mem_alloc(sizeof *stack);
    pthread_mutex_init(&stack->lock, NULL);
    *(uint64_t *)out->data = step_resource_add(call->step, stack, stack_free);
    return KERNEL_DONE;
}

const struct kernel_code kernel_stack = {.run = stack_run};

static struct stack *find_stack(struct kernel_call *call)
{
    const struct tensor *handle = call->in[0];
    struct stack *stack = NULL;
    if (tensor_count(handle) == 1)
        stack = step_resource_get(call->step, *(const uint64_t *)handle->data, stack_free);
    if (!stack)
        kernel_fail(call, "the handle is not that of a stack of this step");
    return stack;
}

static int push_prepare(struct kernel_setup *setup)
{
    setup->out[0] = (struct kernel_output){.forward = FORWARD_ALIAS, .from = 1};
    return 0;
}

static int stack_push_run(struct kernel_call *call)
{
    struct stack *stack = find_stack(call);
    struct tensor element = TENSOR_INIT;
    if (!stack)
        return call->err->code;
    if (kernel_keep_input(call, 1, &element))
        return call->err->code;
    pthread_mutex_lock(&stack->lock);
    vec_push(&stack->elements, element);
    pthread_mutex_unlock(&stack->lock);
    return kernel_alias_output(call, 0, 1, NULL) ? KERNEL_DONE : call->err->code;
}

const struct kernel_code kernel_stack_push = {.prepare = push_prepare, .run = stack_push_run};

static int pop_run(struct kernel_call *call)
{
    struct stack *stack = find_stack(call);
    struct tensor element = TENSOR_INIT;
    if (!stack)
        return call->err->code;
    pthread_mutex_lock(&stack->lock);
    bool any = stack->elements.n > 0;
    if (any)
        element = vec_pop(&stack->elements);
    pthread_mutex_unlock(&stack->lock);
    if (!any)
        return kernel_fail(call, "the stack is empty");
    enum dtype type = call->node->outputs[0].type;
    int code = KERNEL_DONE;
    if (element.type != type)
        code = kernel_fail(call, "the element is %s, not %s", dtype_name(element.type),
                           dtype_name(type));
    else if (!kernel_share_output(call, 0, &element))
        code = call->err->code;
    tensor_release(&element);
    return code;
}

static int pop_prepare(struct kernel_setup *setup)
{
    setup->out[0] = (struct kernel_output){.forward = FORWARD_SHARE};
    return 0;
}

const struct kernel_code kernel_stack_pop = {.prepare = pop_prepare, .run = pop_run};
