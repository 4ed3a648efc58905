/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions. The input is seen as groups of dimensions that are alternately kept and reduced. If
 * the innermost group is reduced, every result folds *runs* of contiguous elements; if it is kept,
 * a row of results folds *rows*. A task is one result, or a tile of a row of results, over one
 * block of the folded elements. The split into blocks depends only on the shape; several blocks
 * leave partial accumulators, which are merged in order. So the bits are the same for any number of
 * threads.
 */
#include <string.h>

#include "base/memory.h"
#include "exec/device/kernel.h"
#include "ops/math/parallel_cpu.h"
#include "ops/math/reducer_cpu.h"
#include "ops/math/results.h"

#define TASKS_WANTED 32
#define TASK_ELEMENTS 32768

struct index_walk { /* an index over some of the dimensions */
    int rank;
    int64_t dims[SHAPE_RANK_MAX], strides[SHAPE_RANK_MAX], count;
};

struct reduction {
    struct shape out;
    struct index_walk kept, folded; /* without the innermost groups below */
    int64_t columns;                /* of a row of results; 1 with runs */
    int64_t length, stride;         /* of the innermost folded group: elements (runs) or rows */
    bool runs;
    int64_t piece, pieces; /* units of work per result: pieces of the innermost group */
    int64_t tiles, blocks;
    int64_t count; /* elements per result */
};

static int64_t walk_offset(const struct index_walk *walk, int64_t index)
{
    int64_t offset = 0;
    for (int i = walk->rank - 1; i >= 0; i--) {
        offset += index % walk->dims[i] * walk->strides[i];
        index /= walk->dims[i];
    }
    return offset;
}

/* Merges neighbours that are both kept or both reduced; drops dimensions of 1. Returns the groups.
 */
static int group(const struct shape *input, unsigned axes, int64_t dims[SHAPE_RANK_MAX],
                 bool reduced[SHAPE_RANK_MAX])
{
    int n = 0;
    for (int axis = 0; axis < input->rank; axis++) {
        bool is_reduced = axes >> axis & 1;
        if (input->dims[axis] == 1)
            continue;
        if (n && reduced[n - 1] == is_reduced) {
            dims[n - 1] *= input->dims[axis];
        } else {
            dims[n] = input->dims[axis];
            reduced[n++] = is_reduced;
        }
    }
    return n;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static void reduction_plan(struct reduction *r, const struct shape *input, unsigned axes,
                           bool keep_dims)
{
    int64_t dims[SHAPE_RANK_MAX], stride = 1;
    bool reduced[SHAPE_RANK_MAX];
    int n = group(input, axes, dims, reduced);
    *r = (struct reduction){
        .kept.count = 1, .folded.count = 1, .columns = 1, .length = 1, .count = 1, .stride = 1};
    r->out = reduce_shape(input, axes, keep_dims);
    r->runs = !n || reduced[n - 1];
    int g = n - 1;
    if (!r->runs)
        r->columns = r->stride = stride = dims[g--];
    if (g >= 0) { /* now a reduced group */
        r->length = r->count = dims[g];
        stride *= dims[g--];
    }
    for (; g >= 0; g--) {
        /* Inserts a dimension outside the existing ones. */
        struct index_walk *walk = reduced[g] ? &r->folded : &r->kept;
        memmove(walk->dims + 1, walk->dims, sizeof *walk->dims * (size_t)walk->rank);
        memmove(walk->strides + 1, walk->strides, sizeof *walk->strides * (size_t)walk->rank);
        walk->dims[0] = dims[g];
        walk->strides[0] = stride;
        walk->rank++;
        walk->count *= dims[g];
        r->count *= reduced[g] ? dims[g] : 1;
        stride *= dims[g];
    }
    int64_t elements = r->kept.count * r->columns * r->count;
    r->piece = r->runs ? REDUCER_RUN : REDUCER_ROWS;
    r->pieces = ceil_div(r->length, r->piece);
    r->tiles = ceil_div(r->columns, REDUCER_COLUMNS);
    r->blocks = 1;
    if (r->kept.count * r->tiles < TASKS_WANTED / 2 && elements >= 2 * TASK_ELEMENTS) {
        r->blocks = TASKS_WANTED / (r->kept.count * r->tiles);
        if (r->blocks > elements / TASK_ELEMENTS)
            r->blocks = elements / TASK_ELEMENTS;
        if (r->blocks > r->folded.count * r->pieces)
            r->blocks = r->folded.count * r->pieces;
    }
}

struct reduce_state {
    const struct reducer *reducer;
    bool keep_dims, planned;
    struct reduction reduction;
};

static size_t partial_bytes(const struct reduction *r, const struct reducer *reducer)
{
    if (r->blocks == 1)
        return 0;
    return (size_t)(r->kept.count * r->columns * r->blocks) * reducer->acc_bytes;
}

static int reduce_prepare(struct kernel_setup *setup)
{
    const char *op = setup->node->op->def->name;
    const struct node_output *in = &setup->in_types[0];
    const struct reducer *reducer = reducer_find(op, in->type);
    unsigned axes;
    if (!reducer)
        return kernel_setup_fail(setup, "no loop for %s of %s", op, dtype_name(in->type));
    struct reduce_state *state = setup->state = mem_alloc(sizeof *state);
    setup->name = reducer->name;
    state->reducer = reducer;
    state->keep_dims = node_bool(setup->node, "keep_dims");
    if (!setup->in_values[1] || !shape_is_known(&in->shape))
        return 0;
    if (reduce_axes(setup->in_values[1], in->shape.rank, &axes, setup->err))
        return setup->err->code;
    reduction_plan(&state->reduction, &in->shape, axes, state->keep_dims);
    state->planned = true;
    setup->scratch_bytes = partial_bytes(&state->reduction, reducer);
    if (state->reduction.count == 1)
        setup->out[0].forward = FORWARD_ALIAS;
    return 0;
}

struct reduce_work {
    const struct reduction *r;
    const struct reducer *reducer;
    int64_t element_bytes;
    const char *x;
    char *out;
    char *partial; /* [blocks][results] accumulators; NULL with one block */
};

static int reduce_body(void *context, int64_t begin, int64_t end)
{
    const struct reduce_work *work = context;
    const struct reduction *r = work->r;
    int64_t units = r->folded.count * r->pieces;
    for (int64_t task = begin; task < end; task++) {
        int64_t block = task % r->blocks, tile = task / r->blocks % r->tiles;
        int64_t row = task / r->blocks / r->tiles, column = tile * REDUCER_COLUMNS;
        int64_t n = r->columns - column < REDUCER_COLUMNS ? r->columns - column : REDUCER_COLUMNS;
        int64_t result = row * r->columns + column, last = units * (block + 1) / r->blocks;
        const char *x = work->x + (walk_offset(&r->kept, row) + column) * work->element_bytes;
        _Alignas(MEM_ALIGNMENT) char acc[REDUCER_COLUMNS * REDUCER_ACC_BYTES];
        /* Folds the block's units of a tile of results into acc. */
        work->reducer->start(n, acc);
        for (int64_t unit = units * block / r->blocks; unit < last; unit++) {
            int64_t first = unit % r->pieces * r->piece;
            int64_t length = r->length - first < r->piece ? r->length - first : r->piece;
            int64_t offset = walk_offset(&r->folded, unit / r->pieces) + first * r->stride;
            const char *at = x + offset * work->element_bytes;
            if (r->runs)
                work->reducer->run(length, at, acc);
            else
                work->reducer->rows(length, r->stride, n, at, acc);
        }
        int64_t results = r->kept.count * r->columns, bytes = (int64_t)work->reducer->acc_bytes;
        if (work->partial)
            memcpy(work->partial + (block * results + result) * bytes, acc, (size_t)(n * bytes));
        else
            work->reducer->finish(n, acc, r->count, work->out + result * work->element_bytes);
    }
    return 0;
}

static int execute(struct kernel_call *call, const struct reduce_state *state,
                   const struct reduction *r)
{
    const struct tensor *x = call->in[0];
    if (!r->count && state->reducer->needs_elements && shape_count(&r->out))
        return kernel_fail(call, "the mean of no integers: input %s", shape_text(&x->shape));
    struct tensor *out = kernel_alloc_nonempty(call, 0, &r->out);
    if (!out)
        return call->err->code;
    if (r->count == 1) { /* like an alias: -0 stays -0 */
        memcpy(out->data, x->data, tensor_bytes(x));
        return KERNEL_DONE;
    }
    struct reduce_work work = {r,       state->reducer, (int64_t)dtype_bytes(x->type),
                               x->data, out->data,      NULL};
    if (r->blocks > 1) {
        work.partial = state->planned ? call->scratch
                                      : kernel_temporary(call, partial_bytes(r, state->reducer));
        if (!work.partial)
            return call->err->code;
    }
    int64_t tasks = r->kept.count * r->tiles * r->blocks;
    int64_t task_elements = tensor_count(x) / tasks + 1;
    parallel_for(call->threads, tasks, TASK_ELEMENTS / task_elements + 1, reduce_body, &work);
    if (work.partial) {
        int64_t results = r->kept.count * r->columns;
        int64_t bytes = results * (int64_t)work.reducer->acc_bytes;
        for (int64_t block = 1; block < r->blocks; block++)
            work.reducer->merge(results, work.partial, work.partial + block * bytes);
        work.reducer->finish(results, work.partial, r->count, work.out);
    }
    return KERNEL_DONE;
}

static int reduce_run(struct kernel_call *call)
{
    const struct reduce_state *state = call->state;
    const struct shape *input = &call->in[0]->shape;
    struct reduction own;
    unsigned axes;
    if (state->planned && state->reduction.count == 1)
        return kernel_alias_output(call, 0, 0, &state->reduction.out) ? KERNEL_DONE
                                                                      : call->err->code;
    if (state->planned)
        return execute(call, state, &state->reduction);
    if (reduce_axes(call->in[1], input->rank, &axes, call->err))
        return call->err->code;
    reduction_plan(&own, input, axes, state->keep_dims);
    return execute(call, state, &own);
}

const struct kernel_code kernel_reduce = {.prepare = reduce_prepare, .run = reduce_run};
