/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/narrow.h"

#include "tensor/narrow_private.h"

void widen_floats(enum dtype type, const uint16_t *from, float *to, int64_t n)
{
    widen_array(type, from, to, n);
}

void narrow_floats(enum dtype type, const float *from, uint16_t *to, int64_t n)
{
    narrow_array(type, from, to, n);
}
