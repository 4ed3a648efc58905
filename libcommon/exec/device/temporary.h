/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that kernels have asked for during a call (kernel_temporary, kernel_device_temporary).
 */
#ifndef TF_EXEC_TEMPORARY_H
#define TF_EXEC_TEMPORARY_H

#include "base/memory.h"
#include "base/vec.h"
#include "tensor/tensor.h"

struct temporary {
    void *memory;          /* the host's; NULL: `buffer` */
    struct buffer *buffer; /* which goes back behind what was enqueued */
};
typedef VEC(struct temporary) temporary_vec;

/* The vector is empty then, and can be used again. */
static inline void temporaries_free(temporary_vec *temporaries)
{
    for (; temporaries->n; temporaries->n--) {
        struct temporary *temporary = &temporaries->items[temporaries->n - 1];
        if (temporary->buffer)
            temporary->buffer->free(temporary->buffer);
        else
            mem_free(temporary->memory);
    }
}

#endif
