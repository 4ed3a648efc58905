/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution by oneDNN: operands are reordered to the primitive's preferred layouts, and the
 * result stays in its layout if the plan allows it.
 */
#include <string.h>

#include "ops/nn/conv_cpu.h"

/* Winograd's F(4x4, 3x3) takes a quarter of the multiplications, but adds work for its transforms:
 * it pays from this many channels and output cells per image. */
#define WINOGRAD_CHANNELS 32
#define WINOGRAD_CELLS 100
#define WINOGRAD_SCRATCH_MAX ((size_t)1 << 30)

#ifdef __AVX512F__
#define LANES 16
#else
#define LANES 8
#endif

/* Permutes a tensor's dimensions from NHWC or NCHW to oneDNN's batch, channels, height, width. */
static dnnl_memory_desc_t to_dnnl(const struct conv *c, const dnnl_memory_desc_t *tensor)
{
    static const int from_nhwc[4] = {0, 2, 3, 1};
    dnnl_memory_desc_t desc = *tensor;
    if (!c->window.nchw)
        dnnl_memory_desc_permute_axes(&desc, tensor, from_nhwc);
    return desc;
}

static dnnl_memory_desc_t with_tag(const dnnl_dims_t dims, int n, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t desc;
    if (dnnl_memory_desc_init_by_tag(&desc, n, dims, dnnl_f32, tag))
        memset(&desc, 0, sizeof desc);
    return desc;
}

struct descs {
    dnnl_memory_desc_t image, filter, output;    /* in any layout */
    dnnl_memory_desc_t filter_plain;             /* in TensorFlow's order */
    dnnl_dims_t strides, dilates, before, after; /* dilates: cells left out */
};

static struct descs describe(const struct conv *c)
{
    const struct window *w = &c->window;
    struct descs d = {.strides = {w->y.stride, w->x.stride},
                      .dilates = {w->y.dilation - 1, w->x.dilation - 1},
                      .before = {w->y.before, w->x.before},
                      .after = {w->y.after, w->x.after}};
    int64_t i = c->in_channels, o = c->out_channels, g = c->groups;
    const dnnl_dims_t image = {c->batch, i, w->y.in, w->x.in};
    const dnnl_dims_t output = {c->batch, o, w->y.out, w->x.out};
    const dnnl_dims_t filter = {g, o / g, i / g, w->y.size, w->x.size};
    /* Without the first dimension if there is one group. */
    int first = g == 1;
    d.image = with_tag(image, 4, dnnl_format_tag_any);
    d.output = with_tag(output, 4, dnnl_format_tag_any);
    d.filter = with_tag(filter + first, 5 - first, dnnl_format_tag_any);
    d.filter_plain = with_tag(filter + first, 5 - first, first ? dnnl_hwio : dnnl_hwigo);
    return d;
}

static dnnl_primitive_desc_t forward_desc(struct chain *chain, const struct descs *d,
                                          dnnl_alg_kind_t algorithm)
{
    dnnl_convolution_desc_t op;
    dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
        &op, dnnl_forward_training, algorithm, &d->image, &d->filter, NULL, &d->output, d->strides,
        d->dilates, d->before, d->after);
    return status ? NULL : chain_try(chain, &op, NULL);
}

static dnnl_primitive_desc_t make_desc(struct chain *chain, const struct conv *c,
                                       const struct descs *d, dnnl_alg_kind_t algorithm)
{
    if (c->direction == CONV_FORWARD)
        return forward_desc(chain, d, algorithm);
    dnnl_primitive_desc_t forward = forward_desc(chain, d, algorithm), desc = NULL;
    dnnl_convolution_desc_t op;
    if (!forward)
        return NULL;
    dnnl_status_t status = c->direction == CONV_IMAGE
                               ? dnnl_dilated_convolution_backward_data_desc_init(
                                     &op, algorithm, &d->image, &d->filter, &d->output, d->strides,
                                     d->dilates, d->before, d->after)
                               : dnnl_dilated_convolution_backward_weights_desc_init(
                                     &op, algorithm, &d->image, &d->filter, NULL, &d->output,
                                     d->strides, d->dilates, d->before, d->after);
    if (!status)
        desc = chain_try(chain, &op, forward);
    dnnl_primitive_desc_destroy(forward);
    return desc;
}

/* Estimates, without measuring. */
static bool winograd_pays(const struct conv *c, const struct kernel_setup *setup)
{
    const struct window *w = &c->window;
    bool has_groups = c->filter.dims[2] != c->in_channels; /* also if they are computed as one */
    if (has_groups || setup->deterministic || setup->exact || w->y.size != 3 || w->x.size != 3 ||
        w->y.stride != 1 || w->x.stride != 1 || w->y.dilation != 1 || w->x.dilation != 1)
        return false;
    /* oneDNN's Winograd gives wrong gradients of images with unequal padding. */
    if (c->direction == CONV_IMAGE && (w->y.before != w->y.after || w->x.before != w->x.after))
        return false;
    return c->in_channels >= WINOGRAD_CHANNELS && c->out_channels >= WINOGRAD_CHANNELS &&
           w->y.out * w->x.out >= WINOGRAD_CELLS;
}

static dnnl_primitive_desc_t choose(struct chain *chain, const struct conv *c,
                                    struct kernel_setup *setup)
{
    struct descs d = describe(c);
    dnnl_primitive_desc_t desc = NULL;
    if (winograd_pays(c, setup))
        desc = make_desc(chain, c, &d, dnnl_convolution_winograd);
    const dnnl_memory_desc_t *scratch =
        desc ? dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0) : NULL;
    if (desc && (!scratch || dnnl_memory_desc_get_size(scratch) <= WINOGRAD_SCRATCH_MAX)) {
        setup->name = "conv.winograd";
        return desc;
    }
    dnnl_primitive_desc_destroy(desc);
    setup->name = "conv.direct";
    desc = make_desc(chain, c, &d, dnnl_convolution_direct);
    if (!desc)
        desc = make_desc(chain, c, &d, dnnl_convolution_auto);
    if (!desc)
        chain_check(chain, dnnl_unimplemented, "convolution");
    return desc;
}

static dnnl_memory_desc_t desc_arg(const_dnnl_primitive_desc_t desc, int arg)
{
    return *dnnl_primitive_desc_query_md(desc, dnnl_query_exec_arg_md, arg);
}

/* Returns an image-like input in the primitive's layout. */
static int image_operand(struct chain *chain, const struct conv *c, struct kernel_setup *setup,
                         int input, const dnnl_memory_desc_t *wants)
{
    const struct layout *layout = setup->in_layouts ? setup->in_layouts[input] : NULL;
    dnnl_memory_desc_t arrives = cpu_desc_of(&setup->in_types[input], layout);
    dnnl_memory_desc_t has = to_dnnl(c, &arrives);
    return chain_wanted(chain, input, &has, wants);
}

/* Leaves an image-like output in the primitive's layout if it may have one, else sets `wants`. */
static dnnl_memory_desc_t output_desc(const struct conv *c, struct kernel_setup *setup,
                                      const dnnl_memory_desc_t *makes)
{
    static const int to_nhwc[4] = {0, 3, 1, 2};
    dnnl_memory_desc_t tensor = *makes;
    if (!c->window.nchw)
        dnnl_memory_desc_permute_axes(&tensor, makes, to_nhwc);
    setup->out[0].layout =
        setup->layouts ? cpu_layout(setup->device, &tensor, c->window.channels) : NULL;
    tensor = cpu_desc_of(&setup->out_types[0], setup->out[0].layout);
    return to_dnnl(c, &tensor);
}

/* Returns how many groups are computed as one: oneDNN has fast kernels of filters' gradients for
 * whole vectors of channels, so small groups pay for products of each other's channels. */
static int64_t groups_as_one(const struct conv *c)
{
    int64_t in = c->in_channels / c->groups, out = c->out_channels / c->groups, n = 1;
    while (in * n % LANES || out * n % LANES)
        n *= 2;
    bool is_depthwise = in == 1 && out == 1;
    return c->direction == CONV_FILTER && in < LANES && !is_depthwise && c->groups % n == 0 ? n : 1;
}

/* Delivers the gradient of a filter of `n` times fewer groups: the blocks on the diagonal, where
 * channels of a group meet their own. A gap between cells keeps the diagonal's strides apart. */
static void deliver_diagonal(struct chain *chain, const struct conv *c, int64_t n, int made,
                             const dnnl_memory_desc_t *makes)
{
    int64_t all = c->out_channels, o = all / c->groups / n, i = c->in_channels / c->groups / n;
    int64_t y = c->window.y.size, x = c->window.x.size, cell = n * (i * all + o);
    const dnnl_dims_t wide = {c->groups, n * o, n * i, y, x}, dims = {n, c->groups, o, i, y, x};
    const dnnl_dims_t wide_steps = {n * o, 1, all, x * cell, cell};
    const dnnl_dims_t from_steps = {i * all + o, n * o, 1, all, x * cell, cell};
    const dnnl_dims_t to_steps = {o, n * o, 1, all, x * i * all, i * all};
    int first = c->groups == 1;
    dnnl_memory_desc_t spread, from, to;
    chain_check(chain,
                dnnl_memory_desc_init_by_strides(&spread, 5 - first, wide + first, dnnl_f32,
                                                 wide_steps + first),
                "filter");
    chain_check(chain, dnnl_memory_desc_init_by_strides(&from, 6, dims, dnnl_f32, from_steps),
                "filter");
    chain_check(chain, dnnl_memory_desc_init_by_strides(&to, 6, dims, dnnl_f32, to_steps),
                "filter");
    int plain = chain_temporary(chain, dnnl_memory_desc_get_size(&spread));
    chain_reorder(chain, made, makes, plain, &spread);
    chain_reorder(chain, plain, &from, chain_output(chain, 0), &to);
}

/* Links the operands of a direction to oneDNN's names. The filter is the second input, except for
 * its own gradient. */
static void link_operands(struct chain *chain, const struct conv *c, struct kernel_setup *setup,
                          dnnl_primitive_desc_t desc, int64_t n)
{
    static const struct {
        int first, input, second, result;
    } names[] = {[CONV_FORWARD] = {DNNL_ARG_SRC, 0, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
                 [CONV_IMAGE] = {DNNL_ARG_DIFF_DST, 2, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC},
                 [CONV_FILTER] = {DNNL_ARG_SRC, 0, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS}};
    int first = names[c->direction].first, second = names[c->direction].second;
    int result = names[c->direction].result;
    bool of_filter = c->direction == CONV_FILTER;
    dnnl_memory_desc_t one = desc_arg(desc, first), other = desc_arg(desc, second);
    dnnl_memory_desc_t makes = desc_arg(desc, result), plain = describe(c).filter_plain;
    dnnl_memory_desc_t wants = of_filter ? plain : output_desc(c, setup, &makes);
    const struct chain_arg inputs[] = {
        {first, image_operand(chain, c, setup, names[c->direction].input, &one)},
        {second, of_filter ? image_operand(chain, c, setup, 2, &other)
                           : chain_wanted(chain, 1, &plain, &other)}};
    int made = n > 1 ? chain_temporary(chain, dnnl_memory_desc_get_size(&makes))
                     : chain_result(chain, chain_output(chain, 0), &makes, &wants);
    const struct chain_arg args[] = {inputs[0], inputs[1], {result, made}};
    chain_add(chain, desc, args, 3);
    if (n > 1)
        deliver_diagonal(chain, c, n, made, &makes);
    else
        chain_deliver(chain, made, &makes, chain_output(chain, 0), &wants);
}

int conv_chain(const struct conv *conv, struct kernel_setup *setup)
{
    struct chain *chain = chain_new(setup);
    struct conv merged = *conv, *c = &merged;
    int64_t n = groups_as_one(conv);
    merged.groups /= n;
    /* oneDNN splits the sum over the batch by the size of the team. */
    if (setup->deterministic && c->direction == CONV_FILTER)
        cpu_set_team(1);
    dnnl_primitive_desc_t desc = choose(chain, c, setup);
    if (desc)
        link_operands(chain, c, setup, desc, n);
    return chain_finish(chain, setup);
}
