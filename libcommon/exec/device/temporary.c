/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/device/temporary.h"

#include "base/memory.h"

void temporaries_give_back(temporary_vec *temporaries)
{
    for (size_t i = 0; i < temporaries->n; i++) {
        struct temporary *temporary = &temporaries->items[i];
        if (temporary->buffer)
            temporary->buffer->free(temporary->buffer);
        else
            mem_free(temporary->memory);
    }
    temporaries->n = 0;
}
