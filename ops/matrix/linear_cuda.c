/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA kernels of linear algebra, by cuSOLVER and cuBLAS. Floats of 16 bits are computed in
 * float32, as on the CPU.
 */
#include "base/memory.h"
#include "ops/device/blas_cuda.h"
#include "ops/device/cuda.h"
#include "ops/matrix/linear_steps_cuda.h"

struct linear_plan {
    const struct linear_form *form;
    struct linear_flags flags;
    bool is_known; /* the following are known */
    int workspace;
};

/* ---- memory ---- */

/* Finds the bytes of each part. */
static void find_parts(const struct linear_form *form, const struct linear_sizes *sizes,
                       enum dtype type, int workspace, size_t parts[N_PARTS])
{
    size_t wide = type == FLOAT64 ? sizeof(double) : sizeof(float);
    size_t rows = (size_t)sizes->matrices * (size_t)sizes->n;
    size_t a = rows * (size_t)sizes->n * wide, b = rows * (size_t)sizes->columns * wide;
    bool is_narrow = dtype_bytes(type) < wide;
    parts[PART_A] = is_narrow ? a : 0;
    parts[PART_B] = is_narrow ? b : 0;
    parts[PART_OUT] = is_narrow ? (size_t)sizes->results * wide : 0;
    parts[PART_FACTORS] = form->has_factors ? a : 0;
    parts[PART_MORE] = form->has_more ? b : 0;
    parts[PART_PIVOTS] = form->solver && form->kind == CUDA_LU ? rows * sizeof(int32_t) : 0;
    parts[PART_INFOS] = form->solver ? (size_t)(sizes->matrices + 1) * sizeof(int32_t) : 0;
    parts[PART_WORKSPACE] = (size_t)workspace * wide;
}

static size_t scratch_for(const size_t parts[N_PARTS])
{
    size_t bytes = 0;
    for (int i = 0; i < N_PARTS; i++)
        bytes += ALIGN_UP(parts[i]);
    return bytes;
}

static int find_workspace(struct cuda_device *d, const struct linear_form *form, int n,
                          enum dtype type, int *elements, struct error *err)
{
    struct cuda_factors factors = {
        .kind = form->kind, .type = type == FLOAT64 ? CUDA_FLOAT64 : CUDA_FLOAT32, .n = n};
    *elements = 0;
    return form->solver && n ? cuda_solver_workspace(d, &factors, elements, err) : 0;
}

/* ---- the kernel ---- */

static int prepare(struct kernel_setup *setup)
{
    const struct node_output *in = setup->in_types;
    struct linear_plan *plan = setup->state = mem_alloc(sizeof *plan);
    struct linear_sizes sizes;
    size_t parts[N_PARTS];
    *plan = (struct linear_plan){.form = linear_form_for(setup->node),
                                 .flags = linear_flags_of(setup->node)};
    if (!plan->form)
        return kernel_setup_fail(setup, "the kernel has no code for %s",
                                 setup->node->op->def->name);
    struct cuda_device *d = cuda_device(setup->device);
    if (plan->form->solver ? cuda_solver_open(d, setup->err) : cuda_blas_open(d, setup->err))
        return setup->err->code;
    if (!setup->shapes_known ||
        !linear_sizes_for(&in[0].shape, setup->n_in > 1 ? &in[1].shape : NULL,
                          &setup->out_types[0].shape, &sizes))
        return 0;
    if (find_workspace(cuda_device(setup->device), plan->form, sizes.n, in[0].type,
                       &plan->workspace, setup->err))
        return setup->err->code;
    find_parts(plan->form, &sizes, in[0].type, plan->workspace, parts);
    plan->is_known = true;
    setup->scratch_bytes = scratch_for(parts);
    return 0;
}

static int take_parts(struct linear_job *job)
{
    const struct linear_plan *plan = job->call->state;
    enum dtype type = job->call->in[0]->type;
    size_t parts[N_PARTS];
    job->workspace = plan->workspace;
    if (!plan->is_known && find_workspace(cuda_device(job->call->device), plan->form, job->sizes.n,
                                          type, &job->workspace, job->call->err))
        return job->call->err->code;
    find_parts(plan->form, &job->sizes, type, job->workspace, parts);
    size_t bytes = scratch_for(parts);
    char *scratch = cuda_scratch(job->call, bytes);
    if (bytes && !scratch)
        return job->call->err->code;
    for (int i = 0; i < N_PARTS; scratch += ALIGN_UP(parts[i]), i++)
        job->parts[i] = parts[i] ? scratch : NULL;
    return 0;
}

static int widen(const struct linear_job *job, int input, void *to)
{
    const struct tensor *in = job->call->in[input];
    return linear_cast(job, &(struct cuda_cast){.from = cuda_type_of(in->type),
                                                .to = job->type,
                                                .n = tensor_count(in),
                                                .x = in->data,
                                                .y = to});
}

static int run_steps(struct linear_job *job)
{
    const struct linear_plan *plan = job->call->state;
    const struct tensor *out = job->call->out[0];
    enum cuda_type type = cuda_type_of(out->type);
    if (type == job->type)
        return plan->form->steps(job);
    job->a = job->parts[PART_A];
    job->b = job->parts[PART_B];
    job->out = job->parts[PART_OUT];
    int code = tensor_count(job->call->in[0]) ? widen(job, 0, job->parts[PART_A]) : 0;
    if (!code && job->call->n_in > 1)
        code = widen(job, 1, job->parts[PART_B]);
    if (!code)
        code = plan->form->steps(job);
    return code ? code
                : linear_cast(job, &(struct cuda_cast){.from = job->type,
                                                       .to = type,
                                                       .n = tensor_count(out),
                                                       .x = job->out,
                                                       .y = out->data});
}

static int run(struct kernel_call *call)
{
    const struct linear_plan *plan = call->state;
    struct linear_job job = {.call = call,
                             .flags = plan->flags,
                             .a = call->in[0]->data,
                             .b = call->n_in > 1 ? call->in[1]->data : NULL};
    struct tensor *out = linear_output(call, &job.sizes);
    if (!out || !tensor_count(out))
        return call->err->code;
    job.type = out->type == FLOAT64 ? CUDA_FLOAT64 : CUDA_FLOAT32;
    job.out = out->data;
    int code = take_parts(&job);
    if (!code)
        code = run_steps(&job);
    return code ? code : KERNEL_ENQUEUED;
}

const struct kernel_code kernel_cuda_linear = {.prepare = prepare, .run = run};
