/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic progressions.
 */
#include <inttypes.h>
#include <math.h>

#include "graph/infer.h"
#include "graph/op_cost.h"

static int count_floats(double start, double limit, double delta, int64_t *n, struct error *err)
{
    if (!isfinite(start) || !isfinite(limit) || !isfinite(delta) || delta == 0)
        return error_set(err, ERR_DATA, "no range goes from %g to %g by %g", start, limit, delta);
    if (delta > 0 ? start > limit : start < limit)
        return error_set(err, ERR_DATA, "going from %g by %g leads away from %g", start, delta,
                         limit);
    double count = ceil((limit - start) / delta);
    if (!(count <= (double)TENSOR_BYTES_MAX))
        return error_set(err, ERR_DATA, "a range of %g elements is too long", count);
    *n = (int64_t)count;
    return 0;
}

static int set_count(uint64_t count, int64_t *n, struct error *err)
{
    if (count > (uint64_t)TENSOR_BYTES_MAX)
        return error_set(err, ERR_DATA, "a range of %" PRIu64 " elements is too long", count);
    *n = (int64_t)count;
    return 0;
}

static int count_ints(int64_t start, int64_t limit, int64_t delta, int64_t *n, struct error *err)
{
    if (delta == 0)
        return error_set(err, ERR_DATA, "delta is 0");
    if (delta > 0 ? start > limit : start < limit)
        return error_set(err, ERR_DATA,
                         "going from %" PRId64 " by %" PRId64 " leads away from %" PRId64, start,
                         delta, limit);
    uint64_t distance =
        delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    uint64_t step = delta > 0 ? (uint64_t)delta : -(uint64_t)delta;
    return set_count(distance / step + (distance % step != 0), n, err);
}

static int count_unsigned(uint64_t start, uint64_t limit, uint64_t delta, int64_t *n,
                          struct error *err)
{
    if (delta == 0)
        return error_set(err, ERR_DATA, "delta is 0");
    if (start > limit)
        return error_set(err, ERR_DATA,
                         "going from %" PRIu64 " by %" PRIu64 " leads away from %" PRIu64, start,
                         delta, limit);
    return set_count((limit - start) / delta + ((limit - start) % delta != 0), n, err);
}

/* Counts the elements of start, start + delta, ... before limit; the three are scalars of one type.
 * ERR_DATA if delta is 0 or leads away from the limit. */
static int range_count(const struct tensor *start, const struct tensor *limit,
                       const struct tensor *delta, int64_t *n, struct error *err)
{
    if (dtype_is_floating(start->type))
        return count_floats(tensor_get_float64(start, 0), tensor_get_float64(limit, 0),
                            tensor_get_float64(delta, 0), n, err);
    if (start->type == UINT64)
        return count_unsigned((uint64_t)tensor_get_int64(start, 0),
                              (uint64_t)tensor_get_int64(limit, 0),
                              (uint64_t)tensor_get_int64(delta, 0), n, err);
    return count_ints(tensor_get_int64(start, 0), tensor_get_int64(limit, 0),
                      tensor_get_int64(delta, 0), n, err);
}

static int range_shape(struct infer *infer)
{
    const struct tensor *values[3];
    int64_t n = SHAPE_UNKNOWN;
    bool known = true;
    for (int i = 0; i < 3; i++) {
        int code = infer_scalar(infer, i);
        if (code)
            return code;
        known = (values[i] = infer_value(infer, i)) && known;
    }
    int code = known ? range_count(values[0], values[1], values[2], &n, infer->err) : 0;
    infer->out[0] = shape_vector(n);
    return code;
}

const struct op_def op_Range = {
    .name = "Range",
    .inputs = "start: Tidx, limit: Tidx, delta: Tidx",
    .outputs = "output: Tidx",
    .attrs = "Tidx: floating|int8|int16|int32|int64|uint16|uint32|uint64 = int32",
    .doc = "The numbers start, start + delta, ... up to but without limit.",
    .flags = OP_NO_GRADIENT,
    .half = HALF_KEPT,
    .cost = cost_made,
    .shape = range_shape,
    .no_gradient = "its arguments say what to count",
};
