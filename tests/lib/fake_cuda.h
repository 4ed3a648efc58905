/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA device (ops/device/cuda.h) over a driver that is none: its calls (ops/device/
 * driver_cuda.h) have the work done by the TEST device's scheduler (lib/device_test.h), in any
 * order that is legal, and kernels are the CPU's. What that device finds this one finds; and it
 * fails for what CUDA does not allow:
 *
 * - memory that another stream uses which does not wait for the stream that it was made in
 * - memory of another card that is copied, but by what is made for that, when access was asked for
 * - memory of the host that is freed, or not pinned any more, before a copy is over
 * - a copy that begins in pinned memory and ends in other; one of other memory that is captured
 * - an event that was captured and is asked for; a time of one that has none
 * - what cannot be captured, from a thread that does
 *
 * It is the module cuda.so beside test.so. The machine has FAKE_CARDS devices, which forget
 * everything when nobody has them open. Besides the settings of the TEST device:
 * TF_TEST_DEVICE_FAIL_CALL=N, it fails for good in the N-th call of the driver;
 * TF_TEST_DEVICE_LACKS=driver|newer|device|pools|peers|access|blas|lt|solver|dnn|dnn-ops|nccl, the
 * machine has none (access: to peers, whatever it has said).
 */
#ifndef TF_TESTS_LIB_FAKE_CUDA_H
#define TF_TESTS_LIB_FAKE_CUDA_H

#include "lib/device_test_internal.h"
#include "ops/device/blas_cuda.h"
#include "ops/device/blas_lt_cuda.h"
#include "ops/device/cuda.h"
#include "ops/device/dnn_cuda.h"
#include "ops/device/nccl_cuda.h"
#include "ops/device/solver_cuda.h"

#define FAKE_CARDS 4

struct fake_card {
    struct test_scheduler *scheduler; /* of all cards, whose streams wait for each other's events */
    int users;
    size_t memory, used;    /* bytes that it has */
    long until_failure;     /* calls of the driver; < 0: never */
    bool asked[FAKE_CARDS]; /* for access to other cards */
};

struct cuda_stream {
    struct fake_card *card;
    int line;
};

extern const struct cuda_driver fake_cuda_driver;
extern const struct cuda_blas fake_cuda_blas;
extern const struct cuda_lt fake_cuda_lt;
extern const struct cuda_solver fake_cuda_solver;
extern const struct cuda_dnn fake_cuda_dnn;
extern const struct cuda_nccl fake_cuda_nccl;

/* Each who opens a device holds its card. */
struct fake_card *fake_card_hold(int index);
void fake_card_drop(struct fake_card *card);

#endif
