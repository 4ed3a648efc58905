/* SPDX-License-Identifier: Apache-2.0
 *
 * ComputeAccidentalHits: the sampled classes are sorted, and each true one is looked up.
 */
#include <float.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "exec/device/kernel.h"

struct sampled_place {
    int64_t class;
    int64_t place;
};

struct hits {
    const int64_t *classes; /* true ones, n_true in each row */
    int64_t n_rows, n_true;
    const struct sampled_place *sampled; /* in the order of classes and places */
    int64_t n_sampled;
    int32_t *rows; /* NULL: hits are only counted */
    int64_t *places;
};

static int compare(const void *a, const void *b)
{
    const struct sampled_place *x = a, *y = b;
    if (x->class != y->class)
        return x->class < y->class ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

static int64_t find_first(const struct hits *hits, int64_t class)
{
    int64_t low = 0, high = hits->n_sampled;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (hits->sampled[middle].class < class)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int64_t find_all(const struct hits *hits)
{
    int64_t n = 0;
    for (int64_t row = 0; row < hits->n_rows; row++) {
        const int64_t *classes = hits->classes + row * hits->n_true;
        for (int64_t k = 0; k < hits->n_true; k++) {
            /* A class that occurs twice among a row's true classes counts as one hit. */
            int64_t first = 0;
            while (classes[first] != classes[k])
                first++;
            if (first < k)
                continue;
            for (int64_t i = find_first(hits, classes[k]);
                 i < hits->n_sampled && hits->sampled[i].class == classes[k]; i++, n++)
                if (hits->rows) {
                    hits->rows[n] = (int32_t)row;
                    hits->places[n] = hits->sampled[i].place;
                }
        }
    }
    return n;
}

static int prepare(struct kernel_setup *setup)
{
    int64_t *n_true = setup->state = mem_alloc(sizeof *n_true);
    *n_true = node_int(setup->node, "num_true");
    return 0;
}

static int run(struct kernel_call *call)
{
    int64_t n_true = *(const int64_t *)call->state;
    const struct shape *classes = &call->in[0]->shape, *sampled = &call->in[1]->shape;
    if (classes->rank != 2 || classes->dims[1] != n_true)
        return kernel_fail(
            call, "true_classes must be a matrix of num_true = %" PRId64 " columns, not %s", n_true,
            shape_text(classes));
    if (classes->dims[0] > INT32_MAX)
        return kernel_fail(call, "%" PRId64 " rows are more than int32 can count",
                           classes->dims[0]);
    if (sampled->rank != 1)
        return kernel_fail(call, "sampled_candidates must be a vector, not %s",
                           shape_text(sampled));
    struct hits hits = {.classes = call->in[0]->data,
                        .n_rows = classes->dims[0],
                        .n_true = n_true,
                        .n_sampled = sampled->dims[0]};
    size_t n = (size_t)hits.n_sampled;
    struct sampled_place *sorted = kernel_temporary(call, (n + 1) * sizeof *sorted);
    if (!sorted)
        return call->err->code;
    for (size_t i = 0; i < n; i++)
        sorted[i] = (struct sampled_place){((const int64_t *)call->in[1]->data)[i], (int64_t)i};
    qsort(sorted, n, sizeof *sorted, compare);
    hits.sampled = sorted;
    struct shape shape = shape_vector(find_all(&hits));
    struct tensor *rows = kernel_alloc_output(call, 0, &shape);
    struct tensor *places = rows ? kernel_alloc_output(call, 1, &shape) : NULL;
    struct tensor *weights = places ? kernel_alloc_output(call, 2, &shape) : NULL;
    if (!weights)
        return call->err->code;
    hits.rows = rows->data;
    hits.places = places->data;
    if (shape.dims[0])
        find_all(&hits);
    for (int64_t i = 0; i < shape.dims[0]; i++)
        ((float *)weights->data)[i] = -FLT_MAX;
    return KERNEL_DONE;
}

const struct kernel_code kernel_accidental_hits = {.prepare = prepare, .run = run};
