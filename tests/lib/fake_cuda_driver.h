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
    FAKE_FAILED = 719, /* the card has failed */
    FAKE_SPOILT = 901, /* the thread's capture is invalid */
};

/* Begins each call; returns 0, or FAKE_FAILED. */
int fake_enter(struct fake_card *card);
/* Makes the card fail; returns FAKE_FAILED. */
int fake_fail(struct fake_card *card, const char *text);
struct fake_card *fake_current(void);
struct fake_card *fake_card_at(int index);
/* Keeps the error, which CUDA would report at the end of a capture; returns FAKE_SPOILT. */
int fake_spoilt(const struct error *err);

/* ---- fake_cuda_copy.c ---- */

int fake_copy(struct cuda_stream *stream, void *to, const void *from, size_t bytes,
              enum cuda_direction direction);
int fake_peer_can(int device, int other, bool *can);
int fake_peer_enable(int device, int other);
int fake_copy_peer(struct cuda_stream *stream, const struct cuda_peer_copy *copy);

/* ---- fake_cuda_memory.c ---- */

int fake_memory_alloc(struct cuda_stream *stream, size_t bytes, void **memory);
int fake_memory_free(struct cuda_stream *stream, void *memory);
int fake_memory_keep(int device);
/* Checks that `data` is in memory of the card. */
int fake_memory_check(struct fake_card *card, const void *data);
int fake_host_alloc(size_t bytes, void **memory);
int fake_host_free(void *memory);
int fake_host_register(void *memory, size_t bytes);
int fake_host_unregister(void *memory);
/* Checks that a copy may use that host memory. */
int fake_host_check(struct fake_card *card, const void *data, size_t bytes);

#endif
