/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/device/optional_cuda.h"

#include <stdlib.h>

#include "ops/device/cuda.h"

char cuda_wish(const char *variable)
{
    const char *text = getenv(variable);
    return text ? *text : 0;
}

int cuda_load_optional(const struct cuda_device *d, const char *variable,
                       int (*load)(struct error *err), bool *is_there, struct error *err)
{
    struct error missing = ERROR_INIT;
    char wish = cuda_wish(variable);
    *is_there = wish != '0' && !load(&missing);
    if (*is_there || wish != '1')
        return 0;
    return error_set(err, missing.code, "%s:%d: %s", d->device.type, d->device.index, missing.text);
}
