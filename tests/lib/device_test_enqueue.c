/* SPDX-License-Identifier: Apache-2.0
 *
 * Work other than copies that the TEST device, and others over its scheduler, enqueue: kernels, and
 * error flags left by others.
 */
#include "base/memory.h"
#include "lib/device_test_internal.h"

int test_as_device(struct test_context *context, int code, struct error *err)
{
    bool says = code > 0 && context->failed && context->scheduler->failure.code;
    return says ? context->failed(context->device, err) : code;
}

int test_enqueue_kernel(struct test_context *context, struct test_job *job,
                        const struct test_access *accesses, int n, struct error *err)
{
    int line = context->compute_line(context);
    return test_as_device(context, test_enqueue(context->scheduler, line, job, accesses, n, err),
                          err);
}

/* ---- faults of others ---- */

struct leaving {
    struct test_job job; /* first */
    struct step_block *block;
    const struct fault *fault;
};

static void run_leaving(struct test_job *job)
{
    const struct leaving *leaving = (struct leaving *)job;
    if (!leaving->block->fault.code)
        leaving->block->fault = *leaving->fault;
}

static void free_leaving(struct test_job *job)
{
    mem_free((struct leaving *)job);
}

int test_leave_fault(struct device *device, struct step_block *block, const struct fault *fault,
                     struct error *err)
{
    struct test_context *context = test_context(device);
    struct leaving *leaving = mem_alloc(sizeof *leaving);
    leaving->job = (struct test_job){.run = run_leaving, .free = free_leaving};
    leaving->block = test_to_host(block);
    leaving->fault = test_to_host(fault);
    struct test_access accesses[] = {{leaving->block, sizeof *block, true},
                                     {leaving->fault, sizeof *fault, false}};
    return test_enqueue_kernel(context, &leaving->job, accesses, 2, err);
}
