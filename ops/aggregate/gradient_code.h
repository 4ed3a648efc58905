/* SPDX-License-Identifier: Apache-2.0
 *
 * Codes of a few bits for gradients. A gradient is cut into groups of elements; the code of each is
 * a row of bytes. The part of a value that a code loses is kept, and added to the next one (error
 * feedback).
 *
 *     one_bit    a bit for each, v >= 0, and the means of both sides: Seide et al., 1-Bit
 * Stochastic Gradient Descent, Interspeech 2014 uniform    2 to 8 bits: which of 2^bits equal parts
 * of mean - 4 sigma to mean + 4 sigma it is in, or next to; the part's middle is its value. Mean
 * and sigma are the group's threshold  of 2 bits: t for v >= t, -t for v <= -t, else 0; of 1 bit: 1
 * for v > t, else -1. As MXNet's gradient compression top        the `keep` elements of largest
 * absolute value, by index the first of equal ones, and NaN before all; the others are 0
 *
 * Rows, little-endian; element i has bits i * bits and following, the lowest first:
 *
 *     one_bit    float32 mean of the negative ones, of the others (0: there are none); bits
 *     uniform    float32 lower end, width of a part; bits
 *     threshold  bits: 1 for the positive value, 2 for -t
 *     top        `keep` times uint32 index in the group, float32 value, by index
 */
#ifndef TF_OPS_GRADIENT_CODE_H
#define TF_OPS_GRADIENT_CODE_H

#include "graph/graph.h"

enum gradient_code_kind { CODE_ONE_BIT, CODE_UNIFORM, CODE_THRESHOLD, CODE_TOP };

struct gradient_code {
    enum gradient_code_kind kind;
    int bits;
    int64_t group, keep; /* elements */
    float threshold;
};

/* Reads a node's attributes. NULL, or what is wrong with them. */
const char *gradient_code_read(struct gradient_code *code, const struct node *node);

/* Returns the bytes of a row. */
int64_t gradient_code_bytes(const struct gradient_code *code);

/* The sum that is coded: a gradient and what was lost before, element by element. */
struct coded_sum {
    const float *gradient, *residual;
};

/* The row of a group's sum. */
void gradient_code_encode(const struct gradient_code *code, struct coded_sum sum, uint8_t *row);

/* The values of n elements of a row, from the first one on; not of CODE_TOP. */
void gradient_code_decode(const struct gradient_code *code, const uint8_t *row, int64_t first,
                          int64_t n, float *values);

/* Entry i of a row of CODE_TOP. False: the row is malformed. */
bool gradient_code_top(const struct gradient_code *code, const uint8_t *row, int64_t i,
                       int64_t *index, float *value);

#endif
