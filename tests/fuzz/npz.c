/* SPDX-License-Identifier: Apache-2.0
 *
 * .npz archives: either refused, or read to tensors that can be printed.
 */
#include "wire/npz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = ERROR_INIT;
    struct npz npz;
    struct str text = STR_INIT;
    if (npz_open_memory(data, size, "fuzz", &npz, &err))
        return 0;
    for (int i = 0; i < npz.n; i++) {
        struct tensor t = TENSOR_INIT;
        if (!npz_read(&npz, i, &t, &err))
            tensor_print(&text, &t, 1000);
        tensor_release(&t);
    }
    str_release(&text);
    npz_close(&npz);
    return 0;
}
