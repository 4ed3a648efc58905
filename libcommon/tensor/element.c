/* SPDX-License-Identifier: Apache-2.0
 *
 * Single elements of a tensor as numbers. Conversion of floats to integers truncates, saturates at
 * the ends of the range, and makes a NaN 0: never undefined behaviour.
 */
#include <math.h>
#include <string.h>

#include "tensor/tensor.h"

double tensor_get_float64(const struct tensor *t, int64_t index)
{
    switch (t->type) {
    case FLOAT32:
        return ((const float *)t->data)[index];
    case COMPLEX64:
        return ((const float *)t->data)[2 * index];
    case FLOAT64:
        return ((const double *)t->data)[index];
    case FLOAT16:
        return float16_to_float32(((const uint16_t *)t->data)[index]);
    case BFLOAT16:
        return bfloat16_to_float32(((const uint16_t *)t->data)[index]);
    case UINT64:
    case RESOURCE:
        return (double)((const uint64_t *)t->data)[index];
    default:
        return (double)tensor_get_int64(t, index);
    }
}

static int64_t float_to_int64(double value)
{
    if (isnan(value))
        return 0;
    if (value >= 0x1p63)
        return INT64_MAX;
    return value < -0x1p63 ? INT64_MIN : (int64_t)value;
}

int64_t tensor_get_int64(const struct tensor *t, int64_t index)
{
    switch (t->type) {
    case INT8:
        return ((const int8_t *)t->data)[index];
    case UINT8:
    case BOOL:
        return ((const uint8_t *)t->data)[index];
    case INT16:
        return ((const int16_t *)t->data)[index];
    case UINT16:
        return ((const uint16_t *)t->data)[index];
    case INT32:
        return ((const int32_t *)t->data)[index];
    case UINT32:
        return ((const uint32_t *)t->data)[index];
    case INT64:
    case UINT64:
    case RESOURCE:
        return ((const int64_t *)t->data)[index];
    case FLOAT32:
    case FLOAT64:
    case FLOAT16:
    case BFLOAT16:
    case COMPLEX64:
        return float_to_int64(tensor_get_float64(t, index));
    default:
        return 0;
    }
}

/* Rounds to odd: an inexact result has its last bit set, so that a further rounding to 16 bits
 * gives the same as one rounding of `value`. */
static float narrow(double value)
{
    float result = (float)value;
    uint32_t bits;
    if (!isfinite(result) || (double)result == value)
        return result;
    memcpy(&bits, &result, sizeof bits);
    if (fabs((double)result) > fabs(value))
        bits--;
    bits |= 1;
    memcpy(&result, &bits, sizeof bits);
    return result;
}

void tensor_set_float64(struct tensor *t, int64_t index, double value)
{
    switch (t->type) {
    case FLOAT32:
        ((float *)t->data)[index] = (float)value;
        break;
    case FLOAT64:
        ((double *)t->data)[index] = value;
        break;
    case FLOAT16:
        ((uint16_t *)t->data)[index] = float32_to_float16(narrow(value));
        break;
    case BFLOAT16:
        ((uint16_t *)t->data)[index] = float32_to_bfloat16(narrow(value));
        break;
    case COMPLEX64:
        ((float *)t->data)[2 * index] = (float)value;
        ((float *)t->data)[2 * index + 1] = 0;
        break;
    case UINT64:
    case RESOURCE:
        ((uint64_t *)t->data)[index] = !(value > 0)      ? 0
                                       : value >= 0x1p64 ? UINT64_MAX
                                                         : (uint64_t)value;
        break;
    case BOOL:
        tensor_set_int64(t, index, value != 0);
        break;
    default: {
        bool has_sign = !(DTYPES_UNSIGNED & DTYPE_BIT(t->type));
        int bits = 8 * (int)dtype_bytes(t->type) - has_sign;
        int64_t whole = float_to_int64(value);
        int64_t greatest = bits > 0 ? INT64_MAX >> (63 - bits) : 0;
        int64_t least = has_sign ? -greatest - 1 : 0;
        tensor_set_int64(t, index, whole < least ? least : whole > greatest ? greatest : whole);
    }
    }
}

void tensor_set_int64(struct tensor *t, int64_t index, int64_t value)
{
    switch (t->type) {
    case INT8:
    case UINT8:
        ((uint8_t *)t->data)[index] = (uint8_t)value;
        break;
    case BOOL:
        ((uint8_t *)t->data)[index] = value != 0;
        break;
    case INT16:
    case UINT16:
        ((uint16_t *)t->data)[index] = (uint16_t)value;
        break;
    case INT32:
    case UINT32:
        ((uint32_t *)t->data)[index] = (uint32_t)value;
        break;
    case INT64:
    case UINT64:
    case RESOURCE:
        ((int64_t *)t->data)[index] = value;
        break;
    case FLOAT32: /* not via double: that would round twice */
        ((float *)t->data)[index] = (float)value;
        break;
    case FLOAT64:
    case FLOAT16:
    case BFLOAT16:
    case COMPLEX64:
        tensor_set_float64(t, index, (double)value);
        break;
    default:
        break;
    }
}
