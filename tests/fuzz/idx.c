/* SPDX-License-Identifier: Apache-2.0
 *
 * IDX files: either refused, or read to a tensor that can be printed.
 */
#include "wire/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = ERROR_INIT;
    struct tensor t;
    struct str text = STR_INIT;
    struct gzfile *file = gzfile_open_memory(data, size, "fuzz");
    if (!idx_read(file, &t, &err)) {
        tensor_print(&text, &t, 1000);
        str_release(&text);
        tensor_release(&t);
    }
    gzfile_close(file);
    return 0;
}
