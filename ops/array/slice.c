/* SPDX-License-Identifier: Apache-2.0
 *
 * Slice and Pad, each of which is the other's gradient.
 */
#include "ops/array/slice.h"
#include "graph/op_cost.h"

#include <inttypes.h>

#include "ops/array/build.h"
#include "ops/lacking.h"

/* Finds the result's shape. size[i] -1: up to the end. `in` may have unknown dimensions. */
static int slice_resolve(const struct shape *in, const int64_t *begin, const int64_t *size,
                         struct shape *out, struct error *err)
{
    out->rank = in->rank;
    for (int i = 0; i < in->rank; i++) {
        int64_t dim = in->dims[i], n = size[i];
        if (begin[i] < 0 || n < -1)
            return error_set(err, ERR_DATA,
                             "begin %" PRId64 " and size %" PRId64
                             " of dimension %d: below 0 (size: below -1)",
                             begin[i], n, i);
        if (dim == SHAPE_UNKNOWN) {
            out->dims[i] = n;
            continue;
        }
        if (begin[i] > dim || (n >= 0 && n > dim - begin[i]))
            return error_set(err, ERR_DATA,
                             "begin %" PRId64 " and size %" PRId64
                             " of dimension %d go beyond [0, %" PRId64 ")",
                             begin[i], n, i, dim);
        out->dims[i] = n < 0 ? dim - begin[i] : n;
    }
    return 0;
}

/* ---- Slice ---- */

static int check_index(struct infer *infer, int input, const char *name, int rank)
{
    const struct shape *s = infer_shape(infer, input);
    int code = infer_vector(infer, input);
    if (code || s->rank < 0 || rank < 0 || s->dims[0] < 0 || s->dims[0] == rank)
        return code;
    return infer_fail(infer, "%s has %" PRId64 " elements, but the input has rank %d", name,
                      s->dims[0], rank);
}

static void read_values(const struct tensor *t, int64_t *values)
{
    for (int64_t i = 0; t && i < tensor_count(t); i++)
        values[i] = tensor_get_int64(t, i);
}

static int slice_shape(struct infer *infer)
{
    /* The rank may follow from the length of an index vector. */
    struct shape in = *infer_shape(infer, 0);
    int rank = in.rank, code;
    for (int i = 1; i <= 2 && rank < 0; i++)
        if (infer_shape(infer, i)->rank == 1 && infer_shape(infer, i)->dims[0] <= SHAPE_RANK_MAX)
            rank = (int)infer_shape(infer, i)->dims[0];
    if ((code = check_index(infer, 1, "begin", rank)) ||
        (code = check_index(infer, 2, "size", rank)) || rank < 0)
        return code;
    if (in.rank < 0)
        in = shape_unknown(rank);
    const struct tensor *begin = infer_value(infer, 1), *size = infer_value(infer, 2);
    int64_t begins[SHAPE_RANK_MAX], n[SHAPE_RANK_MAX];
    read_values(begin, begins);
    read_values(size, n);
    if (begin && size)
        return slice_resolve(&in, begins, n, &infer->out[0], infer->err);
    /* Only some elements of begin, or of size, are known. */
    struct shape sizes, starts;
    bool sized = infer_value_shape(infer, 2, &sizes) && sizes.rank == in.rank;
    bool begun = infer_value_shape(infer, 1, &starts) && starts.rank == in.rank;
    infer->out[0] = in;
    for (int i = 0; i < in.rank; i++) {
        int64_t start = begun ? starts.dims[i] : -1;
        bool known = in.dims[i] >= 0 && start >= 0 && start <= in.dims[i];
        if (size && begun && n[i] == -1)
            infer->out[0].dims[i] = known ? in.dims[i] - start : SHAPE_UNKNOWN;
        else
            infer->out[0].dims[i] = sized ? sizes.dims[i] : SHAPE_UNKNOWN;
    }
    return 0;
}

/* Builds [before, after] of each dimension, as a value. */
static struct edge slice_paddings(struct grad *g, enum dtype type)
{
    struct build *b = &g->b;
    struct edge x = grad_input(g, 0), begin = grad_input(g, 1);
    const struct shape *in = build_shape(b, x), *out = build_shape(b, grad_output(g, 0));
    int64_t begins[SHAPE_RANK_MAX], values[2 * SHAPE_RANK_MAX];
    int n = array_constant(b, begin, begins, SHAPE_RANK_MAX);
    if (n >= 0 && n == in->rank && shape_is_known(in) && shape_is_known(out)) {
        for (int i = 0; i < n; i++) {
            values[2 * i] = begins[i];
            values[2 * i + 1] = in->dims[i] - begins[i] - out->dims[i];
        }
        return build_binary(b, "Reshape", array_ints(b, type, values, 2 * n),
                            build_ints(b, (int64_t[]){n, 2}, 2));
    }
    struct edge rest =
        build_binary(b, "Sub", array_shape(b, x, type), array_shape(b, grad_output(g, 0), type));
    struct edge columns[] = {begin, build_binary(b, "Sub", rest, begin)};
    struct attr axis = {"axis", attr_int(1)};
    return build_op(b, "Pack", columns, 2, &axis, 1);
}

static void slice_gradient(struct grad *g)
{
    struct edge paddings = slice_paddings(g, build_type(&g->b, grad_input(g, 1)));
    g->in[0] = build_binary(&g->b, "Pad", g->out[0], paddings);
}

#define SLICES(op, ...)                                                                            \
    const struct op_def op_##op = {                                                                \
        .name = #op, .outputs = "output: T", .half = HALF_CLEAR, __VA_ARGS__}

SLICES(Slice, .inputs = "input: T, begin: Index, size: Index",
       .attrs = "T: numeric|bool, Index: int32|int64",
       .doc = "A block of a tensor, by where it begins and its size.",
       .detail = "A size of -1 reaches to the end of the dimension."
                 "\n" NO_STRINGS,
       .cost = cost_picked, .shape = slice_shape, .gradient = slice_gradient);

/* ---- Pad ---- */

static int pad_shape(struct infer *infer)
{
    const struct shape *in = infer_shape(infer, 0), *p = infer_shape(infer, 1);
    const struct tensor *paddings = infer_value(infer, 1);
    int code = infer_rank(infer, 1, 2), rank = in->rank;
    if (code)
        return code;
    if (p->rank == 2 && p->dims[1] >= 0 && p->dims[1] != 2)
        return infer_fail(infer, "paddings must have 2 columns, not %" PRId64, p->dims[1]);
    if (p->rank == 2 && p->dims[0] >= 0 && rank >= 0 && p->dims[0] != rank)
        return infer_fail(infer, "paddings has %" PRId64 " rows, but the input has rank %d",
                          p->dims[0], rank);
    if (rank < 0 && p->rank == 2 && p->dims[0] <= SHAPE_RANK_MAX)
        rank = (int)p->dims[0];
    infer->out[0].rank = rank;
    for (int i = 0; i < rank; i++) {
        int64_t *out = &infer->out[0].dims[i];
        *out = SHAPE_UNKNOWN;
        if (!paddings)
            continue;
        int64_t before = tensor_get_int64(paddings, 2 * i);
        int64_t after = tensor_get_int64(paddings, 2 * i + 1);
        if (before < 0 || after < 0)
            return infer_fail(infer, "paddings of dimension %d are negative: %" PRId64 ", %" PRId64,
                              i, before, after);
        if (in->rank >= 0 && in->dims[i] >= 0 &&
            (__builtin_add_overflow(before, after, out) ||
             __builtin_add_overflow(*out, in->dims[i], out)))
            return infer_fail(infer, "paddings of dimension %d are too large", i);
    }
    return 0;
}

static void pad_gradient(struct grad *g)
{
    struct build *b = &g->b;
    struct edge paddings = grad_input(g, 1), begin; /* the first column of the paddings */
    int64_t values[2 * SHAPE_RANK_MAX];
    int n = array_constant(b, paddings, values, 2 * SHAPE_RANK_MAX);
    for (int i = 0; i < n / 2; i++)
        values[i] = values[2 * i];
    if (n >= 0) {
        begin = array_ints(b, build_type(b, paddings), values, n / 2);
    } else {
        struct edge column[] = {paddings, build_ints(b, (int64_t[]){0, 0}, 2),
                                build_ints(b, (int64_t[]){-1, 1}, 2)};
        begin = array_flatten(b, build_op(b, "Slice", column, 3, NULL, 0));
    }
    struct edge slice[] = {g->out[0], begin,
                           array_shape(b, grad_input(g, 0), build_type(b, begin))};
    g->in[0] = build_op(b, "Slice", slice, 3, NULL, 0);
}

SLICES(Pad, .inputs = "input: T, paddings: Tpaddings",
       .attrs = "T: numeric|bool, Tpaddings: int32|int64 = int32",
       .doc = "A tensor with zeros added around it.",
       .detail = "Row i of paddings says how many come before and after it in dimension i."
                 "\n" NO_STRINGS,
       .identity = {SAME_ARGUMENT, 0.0, 0, "changes nothing"}, .cost = cost_elements,
       .shape = pad_shape, .gradient = pad_gradient);
