/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the fake driver share.
 */
#ifndef TF_TESTS_LIB_FAKE_CUDA_DRIVER_H
#define TF_TESTS_LIB_FAKE_CUDA_DRIVER_H

#include "lib/fake_cuda.h"

/* Errors of CUDA's, by its own numbers. */
enum {
    FAKE_INVALID = 1,
    FAKE_FAILED = 719, /* the card has */
    FAKE_SPOILT = 901, /* what the thread captures */
};

/* Each call begins with it: 0, or FAKE_FAILED. */
int fake_enter(struct fake_card *card);
/* The card fails; FAKE_FAILED. */
int fake_fail(struct fake_card *card, const char *text);
struct fake_card *fake_current(void);

/* ---- fake_cuda_memory.c ---- */

int fake_memory_alloc(struct cuda_stream *stream, size_t bytes, void **memory);
int fake_memory_free(struct cuda_stream *stream, void *memory);
int fake_memory_keep(int device);
int fake_host_alloc(size_t bytes, void **memory);
int fake_host_free(void *memory);
int fake_host_register(void *memory, size_t bytes);
int fake_host_unregister(void *memory);
/* Whether a copy may use the memory of the host. */
int fake_host_check(struct fake_card *card, const void *data, size_t bytes);

#endif
