/* SPDX-License-Identifier: Apache-2.0
 *
 * A device remembers the algorithm for each convolution that it has seen. Kernels bring their own
 * workspace.
 */
#include "ops/device/dnn_cuda.h"

#include "base/str.h"
#include "ops/device/cuda.h"
#include "ops/device/kernel_cuda.h"
#include "ops/device/measure_cuda.h"

#define WORKSPACE_LIMIT ((size_t)2 << 30) /* bytes, of one convolution */

int cuda_dnn_open(struct cuda_device *d, bool *is_there, struct error *err)
{
    struct cuda_handle *h = &d->handles[CUDA_DNN];
    int code = cuda_handle_open(d, h, &d->dnn->calls, CUDA_DNN_VARIABLE, err);
    *is_there = !code && h->handle;
    return code;
}

/* ---- algorithms ---- */

static struct cuda_dnn_conv of_device(const struct cuda_device *d, const struct cuda_dnn_conv *conv)
{
    struct cuda_dnn_conv own = *conv;
    own.tf32 = d->tf32 && conv->type == CUDA_FLOAT32;
    own.fast = d->fast;
    return own;
}

/* Returns the memory that an algorithm may use: a quarter of the free memory, rounded to a power of
 * two, so that a few more bytes in use do not change the choice. */
static size_t workspace_limit(struct cuda_device *d)
{
    size_t used = atomic_load(&d->used), limit = WORKSPACE_LIMIT;
    size_t left = used < d->limit ? d->limit - used : 0;
    while (limit > left / 4)
        limit /= 2;
    return limit;
}

static struct cuda_trial_part part(const struct cuda_dnn_conv *c, int64_t channels, int64_t outer,
                                   int64_t cells)
{
    int64_t bytes = channels * outer * cells * cuda_float_bytes(c->type);
    return (struct cuda_trial_part){.bytes = (size_t)bytes};
}

/* Measures in memory allocated for it; false: too little memory, or the library fails. */
static bool measure(struct cuda_device *d, const struct cuda_dnn_conv *c, size_t limit,
                    struct cuda_dnn_algorithm *found)
{
    struct cuda_trial_part parts[] = {
        part(c, c->in_channels, c->batch, (int64_t)c->y.in * c->x.in),
        part(c, c->in_channels / c->groups, c->out_channels, (int64_t)c->y.size * c->x.size),
        part(c, c->out_channels, c->batch, (int64_t)c->y.out * c->x.out),
        {.bytes = limit}};
    struct buffer *memory = cuda_trial_memory(&d->device, c->type, parts, 4);
    if (!memory)
        return false;
    struct cuda_dnn_data data = {parts[0].data, parts[1].data, parts[2].data, parts[3].data, limit};
    bool done = !d->dnn->find(d->handles[CUDA_DNN].handle, c, &data, limit, found);
    memory->free(memory);
    return done;
}

static void find(struct cuda_device *d, const struct cuda_dnn_conv *c, size_t limit,
                 struct cuda_dnn_algorithm *found)
{
    struct error ignored = ERROR_INIT; /* without an algorithm our own kernel computes it */
    *found = (struct cuda_dnn_algorithm){.number = -1};
    if (cuda_handle_use(d, &d->handles[CUDA_DNN], &ignored) ||
        (cuda_choices_measured(&d->choices) && measure(d, c, limit, found)))
        return;
    if (d->dnn->find(d->handles[CUDA_DNN].handle, c, NULL, limit, found))
        found->number = -1;
}

void cuda_dnn_choose(struct cuda_device *d, const struct cuda_dnn_conv *conv,
                     struct cuda_dnn_algorithm *chosen)
{
    struct cuda_dnn_conv own = of_device(d, conv);
    size_t limit = workspace_limit(d);
    struct str name = STR_INIT;
    /* The name contains all that a measurement depends on. */
    static const char *const directions[] = {"forward", "image", "filter"};
    const struct cuda_dnn_axis *y = &own.y, *x = &own.x;
    str_printf(&name,
               "%s cudnn=%d%s conv %s %s %s images=%d,%d,%d,%d filters=%d,%d,%d groups=%d "
               "stride=%d,%d dilation=%d,%d pad=%d,%d workspace=%zuK",
               d->choice, d->dnn->version(), own.exact && !d->device.exact ? " exact" : "",
               directions[own.direction], dtype_name(cuda_dtype(own.type)),
               own.nchw ? "NCHW" : "NHWC", own.batch, own.in_channels, y->in, x->in,
               own.out_channels, y->size, x->size, own.groups, y->stride, x->stride, y->dilation,
               x->dilation, y->pad, x->pad, limit >> 10);
    struct cuda_choice choice = {.name = name.data};
    pthread_mutex_lock(&d->handles[CUDA_DNN].lock);
    if (cuda_choices_find(&d->choices, &choice))
        *chosen = (struct cuda_dnn_algorithm){(int)choice.number, choice.bytes};
    else {
        find(d, &own, limit, chosen);
        choice.number = chosen->number;
        choice.bytes = chosen->workspace_bytes;
        cuda_choices_add(&d->choices, &choice);
    }
    pthread_mutex_unlock(&d->handles[CUDA_DNN].lock);
    str_release(&name);
}

int cuda_dnn_conv(struct kernel_call *call, const struct cuda_dnn_conv *conv,
                  const struct cuda_dnn_data *data, int algorithm)
{
    struct cuda_device *d = cuda_device(call->device);
    struct cuda_handle *h = &d->handles[CUDA_DNN];
    struct cuda_dnn_conv own = of_device(d, conv);
    if (cuda_handle_begin(call, h))
        return call->err->code;
    int status = d->dnn->conv(h->handle, &own, data, algorithm);
    return cuda_handle_end(call, h, status, "a convolution");
}
