/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA device (ops/device/cuda.h) over a fake driver: its calls (ops/device/driver_cuda.h) let
 * the TEST device's scheduler (lib/device_test.h) do the work, in any legal order, and kernels are
 * the CPU's. It finds all mistakes that the TEST device finds, and also fails for what CUDA does
 * not allow:
 *
 * - use of memory in a stream that does not wait for the stream in which it was allocated
 * - copying memory of another card, except by the calls for that once access was enabled
 * - host memory that is freed, or unpinned, before a copy is over
 * - a copy that begins in pinned memory and ends in other memory; capturing one of unpinned memory
 * - a wait for a captured event; the time of an event that has none
 * - calls that cannot be captured, from a thread that captures
 *
 * It is the module cuda.so beside test.so. The machine has FAKE_CARDS devices, which lose their
 * state once nobody has them open. Besides the settings of the TEST device:
 * TF_TEST_DEVICE_FAIL_CALL=N, it fails for good in the N-th call of the driver;
 * TF_TEST_DEVICE_LACKS=driver|newer|device|pools|peers|access|blas|lt|solver|dnn|dnn-ops|nccl, the
 * machine lacks that (access: to peers, though it claims to have it).
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
    size_t memory, used;    /* bytes, of all and in use */
    long until_failure;     /* calls of the driver; < 0: never */
    bool asked[FAKE_CARDS]; /* access to other cards was enabled */
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

/* Returns whether TF_TEST_DEVICE_LACKS names it. */
bool fake_lacks(const char *what);
/* A library's load: fails if the machine lacks the library, which is there for `use`. */
int fake_load(const char *what, const char *use, struct error *err);

/* Puts work into the stream that does nothing, but counts as time. */
void fake_take_time(struct cuda_stream *stream);

/* Each open device holds its card. */
struct fake_card *fake_card_hold(int index);
void fake_card_drop(struct fake_card *card);

#endif
