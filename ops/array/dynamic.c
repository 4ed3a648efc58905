/* SPDX-License-Identifier: Apache-2.0
 *
 * Distributing rows over tensors by number, and merging them again.
 */
#include "base/memory.h"
#include "graph/op_cost.h"
#include "ops/array/build.h"
#include "ops/array/reshape.h"
#include "ops/lacking.h"

/* ---- DynamicPartition ---- */

static int partition_shape(struct infer *infer)
{
    const struct shape *data = infer_shape(infer, 0), *partitions = infer_shape(infer, 1);
    if (data->rank < 0 || partitions->rank < 0)
        return 0;
    if (!reshape_begins(data, partitions))
        return infer_fail(infer, "the shape of partitions, %s, does not begin that of data, %s",
                          shape_text(partitions), shape_text(data));
    const struct shape any = shape_vector(SHAPE_UNKNOWN);
    int code = reshape_join(&any, data, partitions->rank, &infer->out[0], infer->err);
    for (int i = 1; i < infer->n_out; i++)
        infer->out[i] = infer->out[0];
    return code;
}

/* The positions 0, 1, ... are partitioned as the data was; they tell where each gradient goes. */
static void partition_gradient(struct grad *g)
{
    struct build *b = &g->b;
    int n = g->node->n_outputs;
    struct edge data = grad_input(g, 0), partitions = grad_input(g, 1);
    struct edge range[] = {build_scalar(b, INT32, 0), build_unary(b, "Size", partitions),
                           build_scalar(b, INT32, 1)};
    struct edge positions =
        array_reshape_like(b, build_op(b, "Range", range, 3, NULL, 0), partitions);
    struct attr count = {"num_partitions", attr_int(n)};
    struct edge inputs[] = {positions, partitions};
    struct edge parts = build_op(b, "DynamicPartition", inputs, 2, &count, 1);
    struct edge *edges = mem_array((size_t)n * 2, sizeof *edges);
    for (int i = 0; i < n; i++) {
        edges[i] = build_slot(parts, i);
        edges[n + i] = grad_out_or_zeros(g, i);
    }
    if (!b->err->code)
        g->in[0] = array_reshape_like(b, build_op(b, "DynamicStitch", edges, 2 * n, NULL, 0), data);
    mem_free(edges);
}

const struct op_def op_DynamicPartition = {
    .name = "DynamicPartition",
    .inputs = "data: T, partitions: int32",
    .outputs = "outputs: num_partitions*T",
    .attrs = "T: numeric|bool, num_partitions: int >= 1",
    .doc = "The rows of data distributed over tensors: row j goes to output partitions[j].",
    .detail = "Rows keep their order. A number outside [0, num_partitions) is an error."
              "\n" NO_STRINGS,
    .flags = OP_SHAPED_BY_DATA,
    .half = HALF_CLEAR,
    .cost = cost_elements,
    .shape = partition_shape,
    .gradient = partition_gradient,
};

/* ---- DynamicStitch ---- */

static int check_pair(struct infer *infer, int i, struct shape *row)
{
    const struct shape *indices = infer_shape(infer, i);
    const struct shape *data = infer_shape(infer, i + infer->n_in / 2);
    if (indices->rank < 0 || data->rank < 0)
        return 0;
    if (!reshape_begins(data, indices))
        return infer_fail(infer, "the shape of indices %d, %s, does not begin that of its data, %s",
                          i, shape_text(indices), shape_text(data));
    struct shape any = shape_vector(SHAPE_UNKNOWN), mine;
    if (reshape_join(&any, data, indices->rank, &mine, infer->err))
        return infer->err->code;
    if (!shape_merge(row, &mine, row))
        return infer_fail(infer, "data %d has rows unlike those before: %s", i, shape_text(data));
    return 0;
}

static int stitch_shape(struct infer *infer)
{
    int64_t rows = 0;
    int n = infer->n_in / 2;
    for (int i = 0; i < n; i++) {
        const struct tensor *indices = infer_value(infer, i);
        int code = check_pair(infer, i, &infer->out[0]);
        if (code)
            return code;
        for (int64_t k = 0; indices && k < tensor_count(indices); k++) {
            int64_t index = tensor_get_int64(indices, k);
            if (index >= 0 && rows >= 0 && index >= rows)
                rows = index + 1;
        }
        if (!indices)
            rows = SHAPE_UNKNOWN;
    }
    if (infer->out[0].rank > 0)
        infer->out[0].dims[0] = rows;
    return 0;
}

static void stitch_gradient(struct grad *g)
{
    int n = g->node->n_inputs / 2;
    for (int i = 0; i < n; i++)
        g->in[n + i] = build_binary(&g->b, "Gather", g->out[0], grad_input(g, i));
}

const struct op_def op_DynamicStitch = {
    .name = "DynamicStitch",
    .inputs = "indices: N*int32, data: N*T",
    .outputs = "merged: T",
    .attrs = "T: numeric|bool, N: int >= 1",
    .doc = "Rows from several tensors in one: row indices[i][j] is data[i][j].",
    .detail = "If an index occurs more than once, the last one counts. Rows that no index names "
              "are 0."
              "\n" NO_STRINGS,
    .flags = OP_SHAPED_BY_DATA,
    .half = HALF_CLEAR,
    .cost = cost_elements,
    .shape = stitch_shape,
    .gradient = stitch_gradient,
};
