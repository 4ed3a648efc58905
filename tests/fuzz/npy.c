/* SPDX-License-Identifier: Apache-2.0
 *
 * .npy files: either refused, or read to a tensor that can be printed.
 */
#include "wire/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = ERROR_INIT;
    struct tensor t;
    struct str text = STR_INIT;
    if (npy_read_memory(data, size, "fuzz", &t, &err))
        return 0;
    tensor_print(&text, &t, 1000);
    str_release(&text);
    tensor_release(&t);
    return 0;
}
