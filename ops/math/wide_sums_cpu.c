/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/math/wide_sums.h"

#include <string.h>

int wide_sums_begin(struct kernel_call *call, struct wide_sums *w, int64_t n, int64_t length)
{
    size_t bytes = (size_t)n * (size_t)length * sizeof(double);
    char *memory = kernel_temporary(call, bytes + (size_t)n + 1);
    if (!memory)
        return call->err->code;
    *w = (struct wide_sums){.n = n,
                            .length = length,
                            .total = (double *)(void *)memory,
                            .state = (uint8_t *)memory + bytes};
    memset(w->state, 0, (size_t)n);
    return 0;
}

void wide_sums_spill(const struct wide_sums *w, int64_t i, float *row)
{
    double *total = w->total + i * w->length;
    bool has_spilled = w->state[i] & WIDE_SUMS_SPILLED;
    for (int64_t j = 0; j < w->length; j++) {
        total[j] = has_spilled ? total[j] + row[j] : row[j];
        row[j] = 0;
    }
    w->state[i] = WIDE_SUMS_SPILLED;
}

void wide_sums_end(const struct wide_sums *w, int64_t i, float *row)
{
    const double *total = w->total + i * w->length;
    if (w->state[i] & WIDE_SUMS_SPILLED)
        for (int64_t j = 0; j < w->length; j++)
            row[j] = (float)(total[j] + row[j]);
}
