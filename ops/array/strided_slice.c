/* SPDX-License-Identifier: Apache-2.0
 *
 * Slices as Python writes them: x[a:b:c, ..., newaxis, i].
 */
#include <inttypes.h>
#include <string.h>

#include "graph/op_cost.h"
#include "ops/array/build.h"
#include "ops/array/slice.h"
#include "ops/lacking.h"

#define MASKS_MAX 32 /* bits that can be used */

struct slice_masks slice_masks_of(const struct node *node)
{
    return (struct slice_masks){node_int(node, "begin_mask"), node_int(node, "end_mask"),
                                node_int(node, "ellipsis_mask"), node_int(node, "new_axis_mask"),
                                node_int(node, "shrink_axis_mask")};
}

struct resolve {
    const struct shape *in;
    const struct slice_spec *spec;
    struct strided_range *range;
    struct error *err;
};

static bool bit(int64_t mask, int i)
{
    return (mask >> i) & 1;
}

static int add_out(struct resolve *r, int64_t dim)
{
    struct shape *out = &r->range->out;
    if (out->rank == SHAPE_RANK_MAX)
        return error_set(r->err, ERR_DATA, "the result would have more than %d dimensions",
                         SHAPE_RANK_MAX);
    out->dims[out->rank++] = dim;
    return 0;
}

static int add_range(struct resolve *r, int64_t start, int64_t step, int64_t count)
{
    struct strided_range *range = r->range;
    range->start[range->rank] = start;
    range->step[range->rank] = step;
    range->count.dims[range->rank++] = count;
    return 0;
}

/* Takes all of a dimension that the request does not mention. */
static int take_all(struct resolve *r)
{
    int64_t dim = r->in->dims[r->range->rank];
    add_range(r, 0, 1, dim);
    return add_out(r, dim);
}

/* x[i]: takes one element, and removes the axis. */
static int take_index(struct resolve *r, int k)
{
    int64_t dim = r->in->dims[r->range->rank];
    if (!r->spec->begin)
        return add_range(r, 0, 1, 1);
    int64_t index = r->spec->begin[k];
    if (r->spec->strides && r->spec->strides[k] <= 0)
        return error_set(r->err, ERR_DATA,
                         "stride %" PRId64 " with index %" PRId64
                         ": only a positive one can shrink an axis",
                         r->spec->strides[k], index);
    if (dim == SHAPE_UNKNOWN)
        return add_range(r, 0, 1, 1);
    if (index < -dim || index >= dim)
        return error_set(r->err, ERR_DATA,
                         "index %" PRId64 " of dimension %d is outside [%" PRId64 ", %" PRId64 ")",
                         index, r->range->rank, -dim, dim);
    return add_range(r, index < 0 ? index + dim : index, 1, 1);
}

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* x[a:b:c]: the ends are clamped to [0, dim] going forward, to [-1, dim - 1] going back. */
static int take_range(struct resolve *r, int k)
{
    int64_t dim = r->in->dims[r->range->rank], count;
    int64_t step = r->spec->strides ? r->spec->strides[k] : 1;
    if (step == 0)
        return error_set(r->err, ERR_DATA, "stride %d is 0", k);
    if (r->spec->strides && bit(r->spec->masks.begin, k) && bit(r->spec->masks.end, k) && step == 1)
        return take_all(r);
    if (!r->spec->strides || !r->spec->begin || !r->spec->end || dim == SHAPE_UNKNOWN) {
        add_range(r, 0, 1, SHAPE_UNKNOWN);
        return add_out(r, SHAPE_UNKNOWN);
    }
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
    int64_t from = r->spec->begin[k] < 0 ? r->spec->begin[k] + dim : r->spec->begin[k];
    int64_t to = r->spec->end[k] < 0 ? r->spec->end[k] + dim : r->spec->end[k];
    from = bit(r->spec->masks.begin, k) ? (step > 0 ? low : high) : clamp(from, low, high);
    to = bit(r->spec->masks.end, k) ? (step > 0 ? high : low) : clamp(to, low, high);
    int64_t distance = step > 0 ? to - from : from - to;
    uint64_t stride = step > 0 ? (uint64_t)step : -(uint64_t)step;
    count = distance <= 0 ? 0 : (int64_t)(((uint64_t)distance - 1) / stride) + 1;
    add_range(r, count ? from : 0, count > 1 ? step : 1, count);
    return add_out(r, count);
}

int slice_resolve_strided(const struct shape *in, const struct slice_spec *spec,
                          struct strided_range *range, struct error *err)
{
    const struct slice_masks *masks = &spec->masks;
    struct resolve r = {in, spec, range, err};
    /* The ellipsis stands for the rest of the input's dimensions. */
    int n = spec->n, code = 0, rest = n <= MASKS_MAX ? in->rank : -1;
    for (int k = 0; n <= MASKS_MAX && k < n; k++)
        rest -= !bit(masks->ellipsis, k) && !bit(masks->new_axis, k);
    range->rank = 0;
    range->out = SHAPE_SCALAR;
    if (rest < 0)
        return error_set(err, ERR_DATA, "%d indices for an input of rank %d", n, in->rank);
    if ((uint64_t)masks->ellipsis & ((uint64_t)masks->ellipsis - 1))
        return error_set(err, ERR_DATA, "more than one ellipsis");
    for (int k = 0; !code && k < n; k++) {
        if (bit(masks->ellipsis, k))
            for (; !code && rest > 0; rest--)
                code = take_all(&r);
        else if (bit(masks->new_axis, k))
            code = add_out(&r, 1);
        else if (bit(masks->shrink_axis, k))
            code = take_index(&r, k);
        else
            code = take_range(&r, k);
    }
    while (!code && range->rank < in->rank)
        code = take_all(&r);
    range->count.rank = range->rank;
    return code;
}

/* ---- declarations ---- */

/* Finds the length of begin, end and strides, inputs first, first + 1, first + 2; -1: unknown. */
static int spec_length(struct infer *infer, int first, int *n)
{
    *n = -1;
    for (int i = first; i < first + 3; i++) {
        const struct shape *s = infer_shape(infer, i);
        int code = infer_vector(infer, i);
        if (code)
            return code;
        if (s->rank < 0 || s->dims[0] < 0)
            continue;
        if (*n >= 0 && *n != s->dims[0])
            return infer_fail(infer, "begin, end and strides must be of the same length");
        if (s->dims[0] > SLICE_SPEC_MAX)
            return infer_fail(infer, "%" PRId64 " indices: at most %d are possible", s->dims[0],
                              SLICE_SPEC_MAX);
        *n = (int)s->dims[0];
    }
    return 0;
}

/* NULL: not known, or only partly. */
static const int64_t *known(const struct infer *infer, int input, int64_t *values)
{
    const struct tensor *t = infer_value(infer, input);
    struct shape computed;
    for (int64_t i = 0; t && i < tensor_count(t); i++)
        values[i] = tensor_get_int64(t, i);
    if (t)
        return values;
    if (!infer_value_shape(infer, input, &computed) || !shape_is_known(&computed))
        return NULL;
    memcpy(values, computed.dims, (size_t)computed.rank * sizeof *values);
    return values;
}

static int strided_slice_shape(struct infer *infer)
{
    int n, code = spec_length(infer, 1, &n);
    const struct shape *in = infer_shape(infer, 0);
    if (code || n < 0 || in->rank < 0)
        return code;
    int64_t begin[SLICE_SPEC_MAX], end[SLICE_SPEC_MAX], strides[SLICE_SPEC_MAX];
    struct slice_spec spec = {slice_masks_of(infer->node), n, known(infer, 1, begin),
                              known(infer, 2, end), known(infer, 3, strides)};
    struct strided_range range;
    code = slice_resolve_strided(in, &spec, &range, infer->err);
    if (!code)
        infer->out[0] = range.out;
    return code;
}

static void strided_slice_gradient(struct grad *g)
{
    enum dtype type = build_type(&g->b, grad_input(g, 1));
    struct edge inputs[] = {array_shape(&g->b, grad_input(g, 0), type), grad_input(g, 1),
                            grad_input(g, 2), grad_input(g, 3), g->out[0]};
    g->in[0] = grad_op(g, "StridedSliceGrad", inputs, 5);
}

#define MASKS                                                                                      \
    "begin_mask: int = 0, end_mask: int = 0, ellipsis_mask: int = 0, new_axis_mask: int = 0, "     \
    "shrink_axis_mask: int = 0"

/* A scalar or vector taken out of a known vector: v[begin], v[begin:end]. */
static bool strided_value(const struct infer *infer, struct shape *value)
{
    struct shape v;
    struct slice_masks masks = slice_masks_of(infer->node);
    const struct tensor *begin = infer_value(infer, 1), *end = infer_value(infer, 2);
    const struct tensor *step = infer_value(infer, 3);
    if (!begin || !end || !step || tensor_count(begin) != 1 || tensor_get_int64(step, 0) != 1 ||
        masks.ellipsis || masks.new_axis || !infer_value_shape(infer, 0, &v))
        return false;
    int64_t from = tensor_get_int64(begin, 0), to = tensor_get_int64(end, 0);
    from = masks.begin ? 0 : from < 0 ? from + v.rank : from;
    to = masks.end ? v.rank : to < 0 ? to + v.rank : to;
    if (masks.shrink_axis)
        to = from + 1;
    to = to > v.rank ? v.rank : to;
    if (from < 0 || from > to)
        return false;
    *value = shape_of((int)(to - from), v.dims + from);
    return true;
}

#define STRIDED(op, ...)                                                                           \
    const struct op_def op_##op = {.name = #op,                                                    \
                                   .outputs = "output: T",                                         \
                                   .attrs = "T: numeric|bool, Index: int32|int64, " MASKS,         \
                                   .half = HALF_CLEAR,                                             \
                                   __VA_ARGS__}

STRIDED(StridedSlice, .inputs = "input: T, begin: Index, end: Index, strides: Index",
        .doc = "Part of a tensor, as Python's x[a:b:c, ..., newaxis, i].",
        .detail =
            "Bit i of a mask is about index i: begin_mask and end_mask ignore the bound, "
            "ellipsis_mask stands for all dimensions that are not named, new_axis_mask inserts "
            "a dimension of 1, shrink_axis_mask takes the one element at begin."
            "\n" NO_STRINGS " Indices are not of int16.",
        .value = strided_value, .cost = cost_picked, .shape = strided_slice_shape,
        .gradient = strided_slice_gradient);

static int strided_grad_shape(struct infer *infer)
{
    int n, code = spec_length(infer, 1, &n);
    return code ? code : infer_dims(infer, 0, &infer->out[0]);
}

static void strided_grad_gradient(struct grad *g)
{
    struct edge inputs[] = {g->out[0], grad_input(g, 1), grad_input(g, 2), grad_input(g, 3)};
    g->in[4] = grad_op(g, "StridedSlice", inputs, 4);
}

STRIDED(StridedSliceGrad, .inputs = "shape: Index, begin: Index, end: Index, strides: Index, dy: T",
        .doc = "Zeros of a shape, with dy where StridedSlice would take it from.",
        .detail = NO_STRINGS, .cost = cost_elements, .shape = strided_grad_shape,
        .gradient = strided_grad_gradient);
