/* SPDX-License-Identifier: Apache-2.0
 *
 * Which tables are cut so that all shards have about as many bytes.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "pass/slice/slice_private.h"

#define MOST_OVER_MEAN 1.1 /* of the fullest shard */

static int by_bytes(const void *a, const void *b)
{
    const struct slice_weight *x = a, *y = b;
    if (x->bytes != y->bytes)
        return (y->bytes > x->bytes) - (y->bytes < x->bytes);
    return (x->table > y->table) - (x->table < y->table);
}

/* Spreads as the placer does: the largest first, each to the shard with the fewest bytes. */
static double fullest_over_mean(const struct slice_weight *weights, size_t n, int shards,
                                double *load)
{
    double total = 0, most = 0;
    for (int k = 0; k < shards; k++)
        load[k] = 0;
    for (size_t i = 0; i < n; i++) {
        double part = (double)weights[i].bytes / shards;
        int least = 0;
        for (int k = 0; k < shards; k++) {
            load[k] += weights[i].cut ? part : 0;
            least = load[k] < load[least] ? k : least;
        }
        load[least] += weights[i].cut ? 0 : (double)weights[i].bytes;
        total += (double)weights[i].bytes;
    }
    for (int k = 0; k < shards; k++)
        most = load[k] > most ? load[k] : most;
    return total > 0 ? most * shards / total : 0;
}

void slice_balance(struct slice_weight *weights, size_t n, int shards)
{
    double *load = mem_array((size_t)shards + 1, sizeof *load);
    if (n)
        qsort(weights, n, sizeof *weights, by_bytes);
    while (fullest_over_mean(weights, n, shards, load) > MOST_OVER_MEAN) {
        size_t i = 0;
        while (i < n && (weights[i].cut || !weights[i].may_be_cut))
            i++;
        if (i == n)
            break;
        weights[i].cut = true;
    }
    mem_free(load);
}
