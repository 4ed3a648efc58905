/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts are oneDNN memory descriptions whose dimensions have the order of the tensor's shape (n,
 * h, w, c for an NHWC image), so that changing a layout needs no knowledge of the op.
 */
#include <string.h>

#include "ops/device/chain_cpu.h"
#include "ops/device/cpu.h"

/* dnnl_data_type_undef: oneDNN has no such type. */
static dnnl_data_type_t dnnl_type(enum dtype type)
{
    switch (type) {
    case FLOAT32:
        return dnnl_f32;
    case BFLOAT16:
        return dnnl_bf16;
    case FLOAT16:
        return dnnl_f16;
    case INT32:
        return dnnl_s32;
    case INT8:
        return dnnl_s8;
    case UINT8:
        return dnnl_u8;
    default:
        return dnnl_data_type_undef;
    }
}

/* An empty description: oneDNN has no such type. */
static dnnl_memory_desc_t row_major(dnnl_data_type_t type, const int64_t *dims, int rank)
{
    dnnl_memory_desc_t desc;
    dnnl_dims_t sizes = {1}, strides = {1};
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        sizes[i] = dims[i];
        strides[i] = stride;
        stride *= dims[i];
    }
    if (dnnl_memory_desc_init_by_strides(&desc, rank ? rank : 1, sizes, type, strides))
        memset(&desc, 0, sizeof desc);
    return desc;
}

dnnl_memory_desc_t cpu_desc_of(const struct node_output *type, const struct layout *layout)
{
    return layout ? layout->desc
                  : row_major(dnnl_type(type->type), type->shape.dims, type->shape.rank);
}

struct channels cpu_channels(const struct shape *shape, int axis)
{
    struct channels c = {shape->dims[axis], 1, 1, 1, 1};
    c.outer = shape_count_of(shape, 0, axis);
    c.inner = shape_count_of(shape, axis + 1, shape->rank);
    *(c.inner == 1 ? &c.block : &c.blocks) = c.n;
    return c;
}

/* Returns whether memory is dense with the dimensions in the order of the first `n` of `order`, the
 * last one varying fastest with a stride of `unit`. */
static bool is_ordered(const dnnl_memory_desc_t *desc, const int *order, int n, int axis,
                       int64_t unit)
{
    int64_t stride = unit;
    for (int i = n - 1; i >= 0; i--) {
        int d = order[i];
        int64_t steps = d == axis ? desc->padded_dims[d] / unit : desc->padded_dims[d];
        if (steps > 1 && desc->format_desc.blocking.strides[d] != stride)
            return false;
        stride *= steps;
    }
    return true;
}

/* Recognizes [batch, channel blocks, space, channels of a block] and [batch, space, channels]. */
static bool find_channels(const dnnl_memory_desc_t *desc, int axis, struct channels *c)
{
    const dnnl_blocking_desc_t *blocking = &desc->format_desc.blocking;
    int order[DNNL_MAX_NDIMS], n = 0, batch = 0;
    int64_t space = 1;
    if (desc->format_kind != dnnl_blocked || desc->ndims < 3 || axis == batch)
        return false;
    order[n++] = batch;
    bool blocked = blocking->inner_nblks == 1 && blocking->inner_idxs[0] == axis;
    if (blocked)
        order[n++] = axis;
    for (int i = 1; i < desc->ndims; i++)
        if (i != axis) {
            order[n++] = i;
            space *= desc->dims[i];
        }
    if (!blocked)
        order[n++] = axis;
    if (blocking->inner_nblks > (blocked ? 1 : 0))
        return false;
    int64_t block = blocked ? blocking->inner_blks[0] : 1, padded = desc->padded_dims[axis];
    *c = (struct channels){desc->dims[axis], desc->dims[batch], padded / block, space, block};
    if (!blocked)
        *c = (struct channels){padded, desc->dims[batch] * space, 1, 1, padded};
    return is_ordered(desc, order, n, axis, block);
}

const struct layout *cpu_layout(struct device *device, const dnnl_memory_desc_t *desc, int axis)
{
    struct channels channels;
    dnnl_memory_desc_t plain = row_major(desc->data_type, desc->dims, desc->ndims);
    if (dnnl_memory_desc_equal(&plain, desc) || !find_channels(desc, axis, &channels))
        return NULL;
    struct cpu_context *context = cpu_context(device);
    pthread_mutex_lock(&context->lock);
    struct layout *layout = context->layouts;
    while (layout && (layout->axis != axis || !dnnl_memory_desc_equal(&layout->desc, desc)))
        layout = layout->next;
    if (!layout) {
        layout = mem_alloc(sizeof *layout);
        *layout = (struct layout){*desc, axis, channels, context->layouts};
        context->layouts = layout;
    }
    pthread_mutex_unlock(&context->lock);
    return layout;
}

const struct layout *cpu_layout_like(struct device *device, const struct layout *layout,
                                     const struct node_output *image)
{
    const struct shape *shape = &image->shape;
    const dnnl_blocking_desc_t *blocking = &layout->desc.format_desc.blocking;
    int64_t block = blocking->inner_nblks ? blocking->inner_blks[0] : 1, h, w;
    dnnl_format_tag_t tag = block == 16  ? dnnl_nChw16c
                            : block == 8 ? dnnl_nChw8c
                            : block == 4 ? dnnl_nChw4c
                                         : dnnl_nhwc;
    bool last = layout->axis == 3;
    h = shape->dims[last ? 1 : 2];
    w = shape->dims[last ? 2 : 3];
    dnnl_dims_t dims = {shape->dims[0], shape->dims[layout->axis], h, w};
    static const int to_nhwc[4] = {0, 3, 1, 2};
    dnnl_memory_desc_t desc, permuted;
    if (dnnl_memory_desc_init_by_tag(&desc, 4, dims, dnnl_type(image->type), tag) ||
        (last && dnnl_memory_desc_permute_axes(&permuted, &desc, to_nhwc)))
        return NULL;
    return cpu_layout(device, last ? &permuted : &desc, layout->axis);
}

size_t cpu_layout_bytes(const struct layout *layout)
{
    return dnnl_memory_desc_get_size(&layout->desc);
}

bool cpu_layout_equal(const struct layout *a, const struct layout *b)
{
    return a == b || (a && b && a->axis == b->axis && dnnl_memory_desc_equal(&a->desc, &b->desc));
}

int64_t cpu_layout_count(const struct layout *layout)
{
    const struct channels *c = &layout->channels;
    return c->outer * c->blocks * c->inner * c->block;
}

/* ---- the change of layout ---- */

static int relayout_prepare(struct kernel_setup *setup)
{
    struct chain *chain = chain_new(setup);
    const struct node_output *type = &setup->in_types[0];
    dnnl_memory_desc_t from = cpu_desc_of(type, setup->in_layouts ? setup->in_layouts[0] : NULL);
    dnnl_memory_desc_t to = cpu_desc_of(type, setup->out[0].layout);
    chain_reorder(chain, 0, &from, chain_output(chain, 0), &to);
    setup->name = "relayout";
    return chain_finish(chain, setup);
}

static int relayout_run(struct kernel_call *call)
{
    return chain_run_call(call->state, call, &call->in[0]->shape);
}

const struct kernel_code cpu_relayout = {
    .prepare = relayout_prepare, .run = relayout_run, .release = chain_free};
