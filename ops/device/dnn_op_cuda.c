/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/device/dnn_op_cuda.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/str.h"
#include "ops/device/cuda.h"
#include "ops/device/kernel_cuda.h"
#include "ops/device/measure_cuda.h"

enum { OWN, CUDNN };   /* numbers of choices */
enum { N_IMAGES = 3 }; /* x, g and out of a family */

bool cuda_dnn_take_image(struct cuda_dnn_op *op, const struct shape *image)
{
    int64_t count = shape_count(image);
    const int64_t *dims = image->dims + (op->nchw ? 2 : 1);
    if (count <= 0 || count > INT_MAX)
        return false;
    op->batch = (int)image->dims[0];
    op->channels = (int)image->dims[op->nchw ? 1 : 3];
    op->y = (struct cuda_dnn_axis){(int)dims[0], 1, 1, 1, 0, (int)dims[0]};
    op->x = (struct cuda_dnn_axis){(int)dims[1], 1, 1, 1, 0, (int)dims[1]};
    return true;
}

/* ---- one computation ---- */

struct trial {
    struct cuda_device *device;
    const struct cuda_dnn_family *family;
    void *launch;
    void *description;
    struct CUstream_st *stream;
};

static int by_own(const void *context)
{
    const struct trial *t = context;
    return t->family->own(t->launch, t->stream);
}

static void *image_at(const struct trial *t, size_t offset)
{
    void *image = NULL;
    if (offset)
        memcpy(&image, (const char *)t->launch + offset, sizeof image);
    return image;
}

/* Returns a launcher's result, or the library's error, in which case *status is not 0. */
static int enqueue(const struct trial *t, int *status)
{
    const struct cuda_dnn *dnn = t->device->dnn;
    struct cuda_dnn_operands operands = {0};
    int result = t->family->before ? t->family->before(t->launch, t->stream) : 0;
    *status = 0;
    if (result)
        return result;
    operands.x = image_at(t, t->family->x);
    operands.g = image_at(t, t->family->g);
    operands.out = image_at(t, t->family->out);
    if (t->family->operands)
        t->family->operands(t->launch, &operands);
    *status = dnn->ops->run(t->device->handles[CUDA_DNN].handle, t->description, &operands);
    if (*status)
        return *status;
    return t->family->after ? t->family->after(t->launch, t->stream) : 0;
}

static int by_cudnn(const void *context)
{
    int status;
    return enqueue(context, &status);
}

/* ---- memory for measurements ---- */

/* NULL: there is too little memory. */
static struct buffer *new_memory(struct device *device, const struct cuda_dnn_op *op,
                                 size_t scratch, struct trial *t)
{
    struct cuda_trial_memory memory = {0};
    const size_t offsets[N_IMAGES] = {t->family->x, t->family->g, t->family->out};
    struct cuda_trial_part parts[N_IMAGES + CUDA_TRIAL_VECTORS + 1] = {0};
    int n = 0;
    int64_t in = (int64_t)op->y.in * op->x.in, out = (int64_t)op->y.out * op->x.out;
    int64_t elements = (in > out ? in : out) * op->batch * op->channels;
    for (; n < N_IMAGES; n++)
        if (offsets[n])
            parts[n].bytes = ALIGN_UP((size_t)elements * (size_t)cuda_float_bytes(op->type));
    while (n < N_IMAGES + CUDA_TRIAL_VECTORS)
        parts[n++].bytes = ALIGN_UP((size_t)op->channels * sizeof(double));
    parts[n++].bytes = scratch;
    struct buffer *buffer = cuda_trial_memory(device, op->type, parts, n);
    if (!buffer)
        return NULL;
    for (int i = 0; i < N_IMAGES; i++)
        if (offsets[i])
            memcpy((char *)t->launch + offsets[i], &parts[i].data, sizeof parts[i].data);
    for (int i = 0; i < CUDA_TRIAL_VECTORS; i++)
        memory.vectors[i] = parts[N_IMAGES + i].data;
    memory.scratch = parts[n - 1].data;
    if (t->family->bind)
        t->family->bind(t->launch, &memory);
    return buffer;
}

/* ---- choices ---- */

/* With the lock held: returns whether cuDNN is used. Only an attempt shows whether it can compute
 * the op at all. If measuring fails, our own kernel is used, and the choice is not kept. */
static bool is_cudnns(struct device *device, const struct cuda_dnn_op *op, size_t scratch,
                      struct trial *t)
{
    struct cuda_device *d = t->device;
    struct error ignored = ERROR_INIT;
    struct str name = STR_INIT;
    bool is_forced = cuda_wish(CUDA_DNN_VARIABLE) == '1', result = false;
    float own, theirs;
    /* The name contains all that a measurement depends on. */
    static const char *const kinds[] = {[CUDA_DNN_AVG_POOL] = "avg-pool",
                                        [CUDA_DNN_AVG_POOL_GRAD] = "avg-pool-grad",
                                        [CUDA_DNN_LRN] = "lrn",
                                        [CUDA_DNN_SOFTMAX] = "softmax",
                                        [CUDA_DNN_LOG_SOFTMAX] = "log-softmax",
                                        [CUDA_DNN_NORM_TRAINING] = "norm-training",
                                        [CUDA_DNN_NORM_INFERENCE] = "norm",
                                        [CUDA_DNN_NORM_GRAD] = "norm-grad"};
    const struct cuda_dnn_axis *y = &op->y, *x = &op->x;
    str_printf(&name,
               "%s cudnn=%d %s %s %s images=%d,%d,%d,%d window=%d,%d stride=%d,%d pad=%d,%d "
               "neighbours=%d",
               d->choice, d->dnn->version(), kinds[op->kind], dtype_name(cuda_dtype(op->type)),
               op->nchw ? "NCHW" : "NHWC", op->batch, op->channels, y->in, x->in, y->size, x->size,
               y->stride, x->stride, y->pad, x->pad, op->neighbours);
    struct cuda_choice choice = {.name = name.data};
    bool is_known = !is_forced && cuda_choices_find(&d->choices, &choice);
    struct buffer *memory = is_known || cuda_handle_use(d, &d->handles[CUDA_DNN], &ignored)
                                ? NULL
                                : new_memory(device, op, scratch, t);
    if (is_known)
        result = choice.number == CUDNN;
    else if (memory && is_forced)
        result = !by_cudnn(t);
    else if (memory && cuda_measure(t->device, by_own, t, &own)) {
        /* Takes the faster one; cuDNN if they are equally fast. */
        result = cuda_measure(t->device, by_cudnn, t, &theirs) && theirs <= own;
        choice.number = result ? CUDNN : OWN;
        cuda_choices_add(&d->choices, &choice);
    }
    if (memory)
        memory->free(memory);
    str_release(&name);
    return result;
}

/* ---- for kernels ---- */

/* Finds out whether the library, with these functions, is available and may be chosen. */
static int find_library(struct cuda_device *d, bool *is_there, struct error *err)
{
    char wish = cuda_wish(CUDA_DNN_VARIABLE);
    *is_there = false;
    if (wish == '0' || cuda_choices_open(&d->choices, err) ||
        (wish != '1' && !cuda_choices_measured(&d->choices)))
        return err->code;
    if (cuda_dnn_open(d, is_there, err) || !*is_there)
        return err->code;
    return cuda_load(d, CUDA_DNN_VARIABLE, &d->dnn->ops->calls, is_there, err);
}

int cuda_dnn_choose_op(struct kernel_setup *setup, const struct cuda_dnn_family *family,
                       const struct cuda_dnn_op *op, const void *launch, size_t scratch,
                       struct cuda_dnn_step *step)
{
    struct cuda_device *d = cuda_device(setup->device);
    bool is_there;
    if (find_library(d, &is_there, setup->err) || !is_there)
        return setup->err->code;
    struct trial t = {d, family, mem_alloc(family->launch_bytes), NULL,
                      (struct CUstream_st *)cuda_stream(d, QUEUE_COMPUTE)};
    memcpy(t.launch, launch, family->launch_bytes);
    pthread_mutex_lock(&d->handles[CUDA_DNN].lock);
    if (!d->dnn->ops->describe(op, &t.description) && !is_cudnns(setup->device, op, scratch, &t)) {
        d->dnn->ops->free(t.description);
        t.description = NULL;
    }
    pthread_mutex_unlock(&d->handles[CUDA_DNN].lock);
    mem_free(t.launch);
    if (!t.description)
        return 0;
    step->ops = d->dnn->ops;
    step->description = t.description;
    snprintf(step->name, sizeof step->name, "%s cudnn=%d", setup->name, d->dnn->version());
    setup->name = step->name;
    return 0;
}

int cuda_dnn_launch(struct kernel_call *call, const struct cuda_dnn_step *step,
                    const struct cuda_dnn_family *family, const void *launch)
{
    struct CUstream_st *stream = cuda_compute(call);
    struct cuda_device *d = cuda_device(call->device);
    struct cuda_handle *h = &d->handles[CUDA_DNN];
    struct trial t = {d, family, (void *)(uintptr_t)launch, step->description, stream};
    int status = 0;
    if (!step->description)
        return cuda_launched(call, family->own(launch, stream));
    if (cuda_handle_begin(call, h))
        return call->err->code;
    int result = enqueue(&t, &status);
    int code = cuda_handle_end(call, h, status, "an op");
    return code == KERNEL_ENQUEUED ? cuda_launched(call, result) : code;
}

void cuda_dnn_state_release(void *state)
{
    struct cuda_dnn_step *step = state;
    if (step->description)
        step->ops->free(step->description);
    mem_free(state);
}
