/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of CUDA kernels: compares with the CPU on the same random inputs, which include special
 * values of the type. Bits must be the same, except those of NaNs.
 */
#ifndef TF_TESTS_LIB_CUDA_BESIDE_H
#define TF_TESTS_LIB_CUDA_BESIDE_H

#include <math.h>

#include "lib/cuda_emulator.h"
#include "lib/cuda_memory.h"
#include "ops/device/launch_cuda.h"
#include "ops/eager.h"
#include "ops/ops.h"

#define BESIDE_INPUTS 5

static inline struct device *beside_device(void)
{
    static struct device *device;
    struct error err = ERROR_INIT;
    if (!device && !(device = device_open("CPU", 0, &(struct device_options){.threads = 1}, &err)))
        fail_msg("%s", err.text);
    return device;
}

static inline enum cuda_type beside_type(enum dtype type)
{
    static const enum cuda_type types[32] = {
#define X(name, in_kernels, wide) [name] = CUDA_##name,
        CUDA_TYPES(X)
#undef X
    };
    return types[type];
}

/* Returns a random value; one in eight is near a limit of the type, or near zero. */
static inline double beside_value(enum dtype type, uint64_t *random)
{
    static const double odd[] = {0,
                                 -0.0,
                                 1,
                                 -1,
                                 2,
                                 0.5,
                                 INFINITY,
                                 -INFINITY,
                                 NAN,
                                 1e30,
                                 -1e30,
                                 1e-40,
                                 1e-310,
                                 3e9,
                                 -3e9,
                                 127.5,
                                 -128,
                                 255,
                                 65504,
                                 65535.5,
                                 2147483647.0,
                                 -2147483648.0};
    uint64_t bits = unit_random(random);
    if (bits % 8 == 0) {
        double value = odd[bits / 8 % (sizeof odd / sizeof *odd)];
        return dtype_is_floating(type) || fabs(value) < 100 ? value : 0;
    }
    double value = (double)(bits >> 40) / (double)(1 << 24) * 16 - 8;
    return type == BOOL ? bits >> 20 & 1 : value;
}

/* Makes a random tensor, with its own memory. Integers are small, or have any bits. */
static inline struct tensor beside_random(enum dtype type, const struct shape *shape,
                                          uint64_t *random)
{
    struct error err = ERROR_INIT;
    struct tensor t = TENSOR_INIT;
    assert_int_equal(tensor_alloc(&t, type, shape, &err), 0);
    struct tensor parts = t; /* of complex numbers */
    if (type == COMPLEX64) {
        parts = tensor_borrow(FLOAT32, &SHAPE_SCALAR, t.data);
        parts.shape = shape_vector(2 * tensor_count(&t));
    }
    for (int64_t i = 0; i < tensor_count(&parts); i++) {
        uint64_t bits = unit_random(random);
        if (dtype_is_integer(type) && bits % 4 == 0)
            memcpy((char *)t.data + (size_t)i * dtype_bytes(type), random, dtype_bytes(type));
        else
            tensor_set_float64(&parts, i, beside_value(parts.type, random));
    }
    return t;
}

/* 0, or the error of the CPU's kernel. */
static inline int beside_run(const char *op, const struct tensor *inputs, int n,
                             const struct eager_attr *attrs, int n_attrs,
                             struct eager_result *result, struct error *err)
{
    struct eager_input in[BESIDE_INPUTS];
    for (int i = 0; i < n; i++)
        in[i] = (struct eager_input){inputs[i], NULL};
    struct eager_call call = {.op = op,
                              .inputs = in,
                              .n_inputs = n,
                              .attrs = attrs,
                              .n_attrs = n_attrs,
                              .device = beside_device(),
                              .seed = 1};
    return eager_run(&call, result, err);
}

static inline bool beside_same(const struct tensor *a, const struct tensor *b, int64_t i)
{
    size_t bytes = dtype_bytes(a->type);
    if (!memcmp((char *)a->data + (size_t)i * bytes, (char *)b->data + (size_t)i * bytes, bytes))
        return true;
    return dtype_is_floating(a->type) && isnan(tensor_get_float64(a, i)) &&
           isnan(tensor_get_float64(b, i));
}

static inline void beside_compare(const char *what, const struct tensor *expected, void *data)
{
    struct tensor got = tensor_borrow(expected->type, &expected->shape, data);
    for (int64_t i = 0; i < tensor_count(expected); i++)
        if (!beside_same(expected, &got, i))
            fail_msg("%s: element %d of %s is %.17g, not %.17g", what, (int)i,
                     shape_text_typed(expected->type, &expected->shape),
                     tensor_get_float64(&got, i), tensor_get_float64(expected, i));
}

/* Checks the result of a launcher. */
static inline void beside_launched(const char *what, int result)
{
    if (result)
        fail_msg("%s: %d, %s", what, result,
                 cuda_emulator_fault() ? cuda_emulator_fault() : "no launch failed");
}

static inline struct guarded beside_place(const struct tensor *t, bool at_end)
{
    return guarded_copy(t->data, tensor_bytes(t), at_end);
}

/* Returns the types of an op's attribute in which the CPU computes; without the attribute, BOOL. */
static inline dtype_set beside_types(const char *op, const char *attr)
{
    const struct op *found = registry_find(ops_registry(), op);
    int i = op_find_attr(found, attr);
    if (i < 0)
        return DTYPE_BIT(BOOL);
    return kernel_types(ops_kernels(), found, &found->attrs[i], "CPU") &
           ~(DTYPE_BIT(STRING) | DTYPE_BIT(RESOURCE));
}

#endif
