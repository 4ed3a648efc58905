/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory for values that leave the process, if there is memory that others can read: a value that
 * is computed there is not copied before it is sent. An executor knows only this interface.
 */
#ifndef TF_EXEC_OUTGOING_H
#define TF_EXEC_OUTGOING_H

#include "tensor/tensor.h"

struct outgoing_memory {
    /* Host memory, held once, for a value of that type and size. The buffer may outlive `outgoing`,
     * and knows whether another process reads it. NULL: the value gets ordinary memory. Any
     * thread. */
    struct buffer *(*alloc)(struct outgoing_memory *outgoing, enum dtype type, size_t bytes);
    /* Returns whether the value, which is about to be sent, may first be copied to such memory. Any
     * thread. */
    bool (*copies)(struct outgoing_memory *outgoing, const struct tensor *value);
};

/* NULL counts as one without memory. */
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
