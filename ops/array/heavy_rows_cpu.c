/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/array/heavy_rows.h"

#include <string.h>

#define LEAST_VALUES 64  /* with fewer values no row has many */
#define LEAST_AVERAGE 32 /* values per row from which all are heavy */
#define GROUP 8          /* indices per sampled one */
#define LEAST_SEEN 16    /* samples of a heavy row: it has about 128 */

static int64_t index_at(const struct tensor *indices, int64_t i)
{
    return indices->type == INT64 ? ((const int64_t *)indices->data)[i]
                                  : ((const int32_t *)indices->data)[i];
}

/* Returns a place in group g, varying by group, so that no period in the indices hides a row. */
static int64_t place_in(int64_t g)
{
    return g * GROUP + (int64_t)(((uint64_t)g * 0x9e3779b97f4a7c15u) >> 61);
}

/* Sets the size of a hash table with room for n. */
static uint64_t set_size(struct heavy_rows *heavy, int64_t n)
{
    uint64_t size = 16;
    heavy->shift = 60;
    while (size < 2 * (uint64_t)n) {
        size *= 2;
        heavy->shift--;
    }
    heavy->mask = size - 1;
    return size;
}

static void *zeroed(struct kernel_call *call, size_t bytes)
{
    void *memory = kernel_temporary(call, bytes);
    return memory ? memset(memory, 0, bytes) : NULL;
}

/* Counts the sampled indices by hash of the row. Returns how many counters reach a heavy row's: an
 * upper bound for the heavy rows. */
static int64_t count(const struct heavy_rows *size, const struct tensor *indices, uint8_t *counts)
{
    int64_t n_groups = tensor_count(indices) / GROUP, most = 0;
    for (int64_t g = 0; g < n_groups; g++) {
        uint8_t *times = &counts[heavy_rows_hash(size, index_at(indices, place_in(g)))];
        if (*times == LEAST_SEEN)
            most++;
        else if (++*times == LEAST_SEEN)
            most += LEAST_SEEN;
    }
    return most;
}

int heavy_rows_find(struct kernel_call *call, struct heavy_rows *heavy,
                    const struct tensor *indices, int64_t n_rows)
{
    int64_t n = tensor_count(indices), n_groups = n / GROUP;
    *heavy = (struct heavy_rows){.all = n >= LEAST_VALUES && n_rows <= n / LEAST_AVERAGE};
    if (heavy->all)
        heavy->n = n_rows;
    if (heavy->all || n < LEAST_VALUES)
        return 0;
    struct heavy_rows size;
    uint8_t *counts = zeroed(call, set_size(&size, n_groups));
    if (!counts)
        return call->err->code;
    int64_t most = count(&size, indices, counts);
    if (!most)
        return 0;
    heavy->found = zeroed(call, set_size(heavy, most) * sizeof *heavy->found);
    heavy->rows = kernel_temporary(call, (size_t)most * sizeof *heavy->rows);
    if (!heavy->found || !heavy->rows)
        return call->err->code;
    for (int64_t g = 0; g < n_groups; g++) {
        int64_t row = index_at(indices, place_in(g));
        if (counts[heavy_rows_hash(&size, row)] != LEAST_SEEN)
            continue;
        uint64_t at = heavy_rows_hash(heavy, row);
        while (heavy->found[at] && heavy->rows[heavy->found[at] - 1] != row)
            at = (at + 1) & heavy->mask;
        if (heavy->found[at])
            continue;
        heavy->rows[heavy->n++] = row;
        heavy->found[at] = (int32_t)heavy->n;
    }
    return 0;
}
