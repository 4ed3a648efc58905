/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes, with unknown dimensions and unknown rank: what is known before there is data. A tensor's
 * own shape is always fully known. Row-major order everywhere.
 */
#ifndef TF_TENSOR_SHAPE_H
#define TF_TENSOR_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "tensor/dtype.h"

#define SHAPE_RANK_MAX 8
#define SHAPE_UNKNOWN (-1) /* as a dimension or as a rank */

struct shape {
    int rank; /* SHAPE_UNKNOWN: nothing is known */
    int64_t dims[SHAPE_RANK_MAX];
};

#define SHAPE_SCALAR ((struct shape){.rank = 0})
#define SHAPE_ANY ((struct shape){.rank = SHAPE_UNKNOWN})

struct shape shape_of(int rank, const int64_t *dims);
struct shape shape_vector(int64_t length);
struct shape shape_matrix(int64_t rows, int64_t columns);
struct shape shape_unknown(int rank); /* of that rank, or of none if that is unknown, too */

bool shape_is_known(const struct shape *shape);                 /* rank and every dimension */
bool shape_equal(const struct shape *a, const struct shape *b); /* unknown parts are equal, too */

/* Returns the elements of a known shape; -1 if something is unknown or the product overflows. */
int64_t shape_count(const struct shape *shape);

/* Counts the elements of dimensions [from, to) of a known shape; the product does not overflow. */
static inline int64_t shape_count_of(const struct shape *shape, int from, int to)
{
    int64_t count = 1;
    for (int i = from; i < to; i++)
        count *= shape->dims[i];
    return count;
}

/* Returns the bytes of a tensor of a known shape and fixed-size type; -1 as above. */
int64_t shape_bytes(const struct shape *shape, enum dtype type);

/* Returns whether some shape satisfies both. */
bool shape_compatible(const struct shape *a, const struct shape *b);

/* Merges what is known of one shape from a and b. Returns false if they contradict each other. */
bool shape_merge(const struct shape *a, const struct shape *b, struct shape *merged);

/* Returns what holds for both a and b: dimensions that differ become unknown. */
struct shape shape_join(const struct shape *a, const struct shape *b);

/* NumPy's broadcasting of two shapes, as far as known. Returns false if it is impossible. */
bool shape_broadcast(const struct shape *a, const struct shape *b, struct shape *result);

/* Sets the row-major strides, in elements, of a known shape. */
void shape_strides(const struct shape *shape, int64_t strides[SHAPE_RANK_MAX]);

/* Converts an axis in [-rank, rank) to [0, rank); false if out of range. */
bool shape_axis(int64_t axis, int rank, int *index);

/* "[?,64]", "[]"; "?" alone for an unknown rank. */
void shape_print(struct str *out, const struct shape *shape);
bool shape_parse(const char *text, struct shape *shape);

/* "float32[?,64]". The type alone means an unknown shape. */
void shape_print_typed(struct str *out, enum dtype type, const struct shape *shape);
bool shape_parse_typed(const char *text, enum dtype *type, struct shape *shape);

/* Prints for messages: the text lies in one of a few per-thread buffers, valid for 7 calls. */
const char *shape_text(const struct shape *shape);
const char *shape_text_typed(enum dtype type, const struct shape *shape);

#endif
