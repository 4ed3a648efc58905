/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays of 16-bit floats to float32 and back, several elements at a time: bitwise the results of
 * the functions in tensor/dtype.h, without their branches.
 */
#ifndef TF_TENSOR_NARROW_H
#define TF_TENSOR_NARROW_H

#include "tensor/dtype.h"

/* For FLOAT16 or BFLOAT16; n elements, rounded to nearest even. */
void widen_floats(enum dtype type, const uint16_t *from, float *to, int64_t n);
void narrow_floats(enum dtype type, const float *from, uint16_t *to, int64_t n);

#endif
