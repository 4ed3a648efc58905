/* SPDX-License-Identifier: Apache-2.0
 *
 * A device has one handle of cuDNN, and remembers the algorithm for each convolution that it has
 * seen. Memory to work in is the kernels' own.
 */
#include "ops/device/dnn_cuda.h"

#include <stdio.h>
#include <string.h>

#include "ops/device/cuda.h"
#include "ops/device/optional_cuda.h"

#define WORKSPACE_LIMIT ((size_t)256 << 20) /* bytes, of one convolution */

int cuda_dnn_check(const struct cuda_device *d, int status, const char *what, struct error *err)
{
    if (!status)
        return 0;
    return error_set(err, ERR_OS, "%s:%d: cuDNN: %s: %s (status %d)", d->device.type,
                     d->device.index, what, d->dnn->error_text(status), status);
}

/* ---- opening ---- */

int cuda_dnn_open(struct cuda_device *d, bool *is_there, struct error *err)
{
    pthread_mutex_lock(&d->dnn_lock);
    int code = 0;
    void *handle = NULL;
    bool is_found = false;
    if (!d->dnn_is_open)
        code = cuda_load_optional(d, CUDA_DNN_VARIABLE, d->dnn->load, &is_found, err);
    if (!code && is_found &&
        (cuda_enter(d, err) || cuda_choices_open(&d->choices, err) ||
         cuda_dnn_check(d, d->dnn->handle_new(&handle), "it is opened", err)))
        code = err->code;
    else if (!code && is_found)
        d->dnn_handle = handle;
    d->dnn_is_open = !code;
    *is_there = d->dnn_handle != NULL;
    pthread_mutex_unlock(&d->dnn_lock);
    return code;
}

void cuda_dnn_close(struct cuda_device *d)
{
    if (d->dnn_handle)
        d->dnn->handle_free(d->dnn_handle);
}

/* ---- algorithms ---- */

static struct cuda_dnn_conv of_device(const struct cuda_device *d, const struct cuda_dnn_conv *conv)
{
    struct cuda_dnn_conv own = *conv;
    own.tf32 = d->tf32 && conv->type == CUDA_FLOAT32;
    own.fast = d->fast;
    return own;
}

const char *cuda_dnn_type_name(enum cuda_type type)
{
    static const char *const names[] = {"float32", "float64", "float16", "bfloat16"};
    return names[type];
}

static struct buffer *room(struct cuda_device *d, const struct cuda_dnn_conv *c, int64_t channels,
                           int64_t outer, int64_t cells)
{
    int64_t bytes = channels * outer * cells * cuda_float_bytes(c->type);
    return d->device.memory->alloc(&d->device, (size_t)bytes);
}

/* Measures with memory of its own; false: there is not as much, or the library fails. */
static bool measure(struct cuda_device *d, const struct cuda_dnn_conv *c,
                    struct cuda_dnn_algorithm *found)
{
    struct buffer *rooms[4] = {
        room(d, c, c->in_channels, c->batch, (int64_t)c->y.in * c->x.in),
        room(d, c, c->in_channels, c->out_channels, (int64_t)c->y.size * c->x.size),
        room(d, c, c->out_channels, c->batch, (int64_t)c->y.out * c->x.out),
        d->device.memory->alloc(&d->device, WORKSPACE_LIMIT)};
    bool has_all = rooms[0] && rooms[1] && rooms[2] && rooms[3], done = false;
    if (has_all) {
        struct cuda_dnn_data data = {rooms[0]->data, rooms[1]->data, rooms[2]->data, rooms[3]->data,
                                     WORKSPACE_LIMIT};
        done = !d->dnn->find(d->dnn_handle, c, &data, WORKSPACE_LIMIT, found);
    }
    for (int i = 0; i < 4; i++)
        if (rooms[i])
            rooms[i]->free(rooms[i]);
    return done;
}

int cuda_dnn_use_queue(struct cuda_device *d, struct error *err)
{
    struct CUstream_st *stream = (struct CUstream_st *)cuda_stream(d, QUEUE_COMPUTE);
    if (cuda_enter(d, err))
        return err->code;
    return cuda_dnn_check(d, d->dnn->use(d->dnn_handle, stream), "a stream is set", err);
}

static void find(struct cuda_device *d, const struct cuda_dnn_conv *c,
                 struct cuda_dnn_algorithm *found)
{
    struct error ignored = ERROR_INIT; /* without an algorithm it is computed otherwise */
    *found = (struct cuda_dnn_algorithm){.number = -1};
    if (cuda_dnn_use_queue(d, &ignored) ||
        (cuda_choices_measured(&d->choices) && measure(d, c, found)))
        return;
    if (d->dnn->find(d->dnn_handle, c, NULL, WORKSPACE_LIMIT, found))
        found->number = -1;
}

void cuda_dnn_choose(struct cuda_device *d, const struct cuda_dnn_conv *conv,
                     struct cuda_dnn_algorithm *chosen)
{
    struct cuda_dnn_conv own = of_device(d, conv);
    struct cuda_choice choice;
    /* All that a measurement depends on. */
    static const char *const directions[] = {"forward", "image", "filter"};
    const struct cuda_dnn_axis *y = &own.y, *x = &own.x;
    snprintf(choice.name, CHOICE_NAME_BYTES,
             "%s cudnn=%d%s conv %s %s %s images=%d,%d,%d,%d filters=%d,%d,%d stride=%d,%d "
             "dilation=%d,%d pad=%d,%d",
             d->choice, d->dnn->version(), own.exact && !d->device.exact ? " exact" : "",
             directions[own.direction], cuda_dnn_type_name(own.type), own.nchw ? "NCHW" : "NHWC",
             own.batch, own.in_channels, y->in, x->in, own.out_channels, y->size, x->size,
             y->stride, x->stride, y->dilation, x->dilation, y->pad, x->pad);
    pthread_mutex_lock(&d->dnn_lock);
    if (cuda_choices_find(&d->choices, &choice))
        *chosen = (struct cuda_dnn_algorithm){(int)choice.number, choice.bytes};
    else {
        find(d, &own, chosen);
        choice.number = chosen->number;
        choice.bytes = chosen->workspace_bytes;
        cuda_choices_add(&d->choices, &choice);
    }
    pthread_mutex_unlock(&d->dnn_lock);
}

int cuda_dnn_conv(struct kernel_call *call, const struct cuda_dnn_conv *conv,
                  const struct cuda_dnn_data *data, int algorithm)
{
    struct cuda_device *d = cuda_device(call->device);
    struct cuda_dnn_conv own = of_device(d, conv);
    pthread_mutex_lock(&d->dnn_lock);
    int code = cuda_dnn_use_queue(d, call->err);
    if (!code)
        code = cuda_dnn_check(d, d->dnn->conv(d->dnn_handle, &own, data, algorithm),
                              "a convolution", call->err);
    pthread_mutex_unlock(&d->dnn_lock);
    return code ? code : KERNEL_ENQUEUED;
}
