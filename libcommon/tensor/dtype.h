/* SPDX-License-Identifier: Apache-2.0
 *
 * Data types. The name is the type's identity everywhere: in scripts, text, streams and options.
 * The numbers are those of TensorFlow's DataType, for files exchanged with it.
 *
 * To add a type, add a row here; the compiler and tests/unit/tensor/tensor.c name the other places
 * that must know it.
 */
#ifndef TF_TENSOR_DTYPE_H
#define TF_TENSOR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*      constant   name         number bytes  .npy descr (NULL: none) */
#define DTYPE_LIST(X)                                                                              \
    X(FLOAT32, "float32", 1, 4, "<f4")                                                             \
    X(FLOAT64, "float64", 2, 8, "<f8")                                                             \
    X(INT32, "int32", 3, 4, "<i4")                                                                 \
    X(UINT8, "uint8", 4, 1, "|u1")                                                                 \
    X(INT16, "int16", 5, 2, "<i2")                                                                 \
    X(INT8, "int8", 6, 1, "|i1")                                                                   \
    X(STRING, "string", 7, 0, NULL)                                                                \
    X(COMPLEX64, "complex64", 8, 8, "<c8")                                                         \
    X(INT64, "int64", 9, 8, "<i8")                                                                 \
    X(BOOL, "bool", 10, 1, "|b1")                                                                  \
    X(BFLOAT16, "bfloat16", 14, 2, NULL)                                                           \
    X(UINT16, "uint16", 17, 2, "<u2")                                                              \
    X(FLOAT16, "float16", 19, 2, "<f2")                                                            \
    X(RESOURCE, "resource", 20, 8, NULL)                                                           \
    X(UINT32, "uint32", 22, 4, "<u4")                                                              \
    X(UINT64, "uint64", 23, 8, "<u8")

enum dtype {
    DTYPE_INVALID = 0,
#define X(constant, name, number, bytes, npy) constant = number,
    DTYPE_LIST(X)
#undef X
};

/* A set of types: bit `number`. */
typedef uint32_t dtype_set;
#define DTYPE_BIT(type) ((dtype_set)1 << (type))

#define DTYPES_FLOATING                                                                            \
    (DTYPE_BIT(FLOAT32) | DTYPE_BIT(FLOAT64) | DTYPE_BIT(FLOAT16) | DTYPE_BIT(BFLOAT16))
#define DTYPES_UNSIGNED                                                                            \
    (DTYPE_BIT(UINT8) | DTYPE_BIT(UINT16) | DTYPE_BIT(UINT32) | DTYPE_BIT(UINT64))
#define DTYPES_INTEGER                                                                             \
    (DTYPE_BIT(INT8) | DTYPE_BIT(INT16) | DTYPE_BIT(INT32) | DTYPE_BIT(INT64) | DTYPES_UNSIGNED)
#define DTYPES_REAL (DTYPES_FLOATING | DTYPES_INTEGER)
#define DTYPES_NUMERIC (DTYPES_REAL | DTYPE_BIT(COMPLEX64))
#define DTYPES_ANY (DTYPES_NUMERIC | DTYPE_BIT(BOOL) | DTYPE_BIT(STRING) | DTYPE_BIT(RESOURCE))

const char *dtype_name(enum dtype type); /* "float32"; "invalid" for anything else */
size_t dtype_bytes(enum dtype type);     /* of one element; 0 for STRING */
const char *dtype_npy(enum dtype type);  /* NULL if .npy has no such type */
bool dtype_parse(const char *name, enum dtype *type);
/* Returns the types that the first n characters of `name` denote: a type, or a class of types
 * (floating, integer, real, numeric, any); 0: neither. */
dtype_set dtype_set_of(const char *name, size_t n);
bool dtype_is_floating(enum dtype type);
bool dtype_is_integer(enum dtype type);

/* 16-bit floats, rounded to nearest even. A NaN stays a NaN. */
float float16_to_float32(uint16_t value);
uint16_t float32_to_float16(float value);
float bfloat16_to_float32(uint16_t value);
uint16_t float32_to_bfloat16(float value);

#endif
