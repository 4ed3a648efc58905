/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantized gradients, of a few bits per element. A gradient is split into groups of elements; each
 * group is encoded as a row of bytes. The quantization error is kept, and added to the next
 * gradient (error feedback).
 *
 *     one_bit    v >= 0; its value is that side's mean (Seide et al., 1-Bit SGD, Interspeech 2014)
 *     uniform    2 to 8 bits: the nearest of 2^bits equal parts of the group's mean +- 4 sigma; its
 *                value is the part's middle
 *     threshold  2 bits: t if v >= t, -t if v <= -t, else 0; 1 bit: 1 if v > t, else -1 (as MXNet)
 *     top        the `keep` elements of largest absolute value (NaN first; of equal ones the first)
 *                by index; the others are 0
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

#define CODE_HEAD 8  /* bytes of two float32 */
#define CODE_ENTRY 8 /* bytes of an index and a value */

enum gradient_code_kind { CODE_ONE_BIT, CODE_UNIFORM, CODE_THRESHOLD, CODE_TOP };

struct gradient_code {
    enum gradient_code_kind kind;
    int bits;
    int64_t group, keep; /* elements of a group, and those kept of it */
    int64_t row;         /* bytes of a row */
    float threshold;
};

/* Reads a node's attributes. Returns NULL, or what is wrong with them. */
const char *gradient_code_read(struct gradient_code *code, const struct node *node);

/* What the kernels of all devices work on; what an op lacks is NULL. */
struct coded_gradients {
    struct gradient_code code;
    int64_t groups, n; /* groups of a gradient; gradients in `rows`, one's after the other's */
    uint8_t *rows;
    const float *gradient;
    float *residual; /* from the gradient's first group on */
    float *mean;     /* of the n gradients, added in their order */
};

/* The sum that is encoded: a gradient and the error of the previous one, element by element. */
struct coded_sum {
    const float *gradient, *residual;
};

/* Encodes a group's sum as a row. */
void gradient_code_encode(const struct gradient_code *code, struct coded_sum sum, uint8_t *row);

/* Decodes n elements of a row, from `first` on; not for CODE_TOP. */
void gradient_code_decode(const struct gradient_code *code, const uint8_t *row, int64_t first,
                          int64_t n, float *values);

/* Reads entry i of a row of CODE_TOP. False: the row is malformed. */
bool gradient_code_top(const struct gradient_code *code, const uint8_t *row, int64_t i,
                       int64_t *index, float *value);

#endif
