/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: what codes of gradients stand for, by their definitions.
 */
#ifndef TF_TESTS_LIB_GRADIENT_CODES_H
#define TF_TESTS_LIB_GRADIENT_CODES_H

#include <math.h>
#include <string.h>

#define N 1024  /* elements, a group */
#define KEPT 11 /* of each group: the hundredth */
#define THRESHOLD 1.5F

static inline void top(const float *v, float *decoded)
{
    memset(decoded, 0, N * sizeof *decoded);
    for (int k = 0; k < KEPT; k++) {
        int largest = -1;
        for (int i = 0; i < N; i++)
            if (decoded[i] == 0 && (largest < 0 || fabsf(v[i]) > fabsf(v[largest])))
                largest = i;
        decoded[largest] = v[largest];
    }
}

static inline void threshold(const float *v, float *decoded)
{
    for (int i = 0; i < N; i++)
        decoded[i] = v[i] >= THRESHOLD ? THRESHOLD : v[i] <= -THRESHOLD ? -THRESHOLD : 0;
}

#endif
