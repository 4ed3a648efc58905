/* SPDX-License-Identifier: Apache-2.0
 *
 * Adding to memory and subtracting from it; shared by updates of variables and rows, and sums of
 * tiles. Only files whose names end in _cpu.c use this.
 */
#ifndef TF_OPS_MATH_ACCUMULATE_H
#define TF_OPS_MATH_ACCUMULATE_H

#include <stdint.h>

#include "tensor/dtype.h"

/* to[i] += from[i], or -=, for n elements; `to` is `from` or does not overlap it. */
typedef void accumulate_loop(void *to, const void *from, int64_t n);

/* Loops for floats, and for integers, which wrap around; NULL for other types. */
accumulate_loop *accumulate_add(enum dtype type);
accumulate_loop *accumulate_subtract(enum dtype type);

#endif
