/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory for values that leave the process, where it has some that others can read: what is
 * computed there need not be copied before it is sent. An executor knows no more of it than this
 * interface.
 */
#ifndef TF_EXEC_OUTGOING_H
#define TF_EXEC_OUTGOING_H

#include "tensor/tensor.h"

struct outgoing_memory {
    /* Host memory, held once, for a value of that type and size; it may outlive `outgoing`. It
     * knows whether another process reads it. NULL: the value is to be kept as any other. Any
     * thread. */
    struct buffer *(*alloc)(struct outgoing_memory *outgoing, enum dtype type, size_t bytes);
    /* Returns whether the value, which is about to be sent, may be copied to such memory first. Any
     * thread.
     */
    bool (*copies)(struct outgoing_memory *outgoing, const struct tensor *value);
};

/* NULL is as one that has no memory. */
static inline struct buffer *outgoing_alloc(struct outgoing_memory *outgoing, enum dtype type,
                                            size_t bytes)
{
    return outgoing ? outgoing->alloc(outgoing, type, bytes) : NULL;
}

static inline bool outgoing_copies(struct outgoing_memory *outgoing, const struct tensor *value)
{
    return outgoing && outgoing->copies(outgoing, value);
}

#endif
