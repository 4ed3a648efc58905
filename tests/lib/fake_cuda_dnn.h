/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the tests' cuDNN share.
 */
#ifndef TF_TESTS_LIB_FAKE_CUDA_DNN_H
#define TF_TESTS_LIB_FAKE_CUDA_DNN_H

#include "lib/fake_cuda.h"
#include "ops/device/dnn_op_cuda.h"
#include "tensor/tensor.h"

enum { DNN_NO_STREAM = 1, DNN_BAD_PARAM = 2000, DNN_NOT_SUPPORTED = 3000 };

struct fake_dnn {               /* a handle */
    struct cuda_stream *stream; /* NULL: none is set */
    unsigned runs;              /* of algorithms that add in any order */
};

/* Distances, in elements, between neighbours along each dimension. */
struct fake_steps {
    int64_t outer, channel, y, x;
};

struct fake_steps fake_dnn_steps(bool nchw, int64_t channels, int64_t height, int64_t width);

/* What is there, as far as it goes. */
struct tensor fake_dnn_array(enum cuda_type type, const void *data);

/* Returns whether the sizes are those of the library's formula. */
bool fake_dnn_is_axis(const struct cuda_dnn_axis *axis);

extern const struct cuda_dnn_ops fake_cuda_dnn_ops;

#endif
