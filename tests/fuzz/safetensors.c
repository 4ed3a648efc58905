/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors: either refused, or tensors that can be printed and that come back the same once they
 * are written. The first two bytes say how long the header is, so that it need not be guessed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "checkpoint/formats/archive.h"
#include "lib/fuzz_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_one(void *context, size_t i, struct tensor *value, struct error *err)
{
    const struct archive *archive = context;
    (void)err;
    tensor_share(value, &archive->tensors.items[i].tensor);
    return 0;
}

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void compare(const struct archive *a, const struct archive *b)
{
    must(a->tensors.n == b->tensors.n);
    for (size_t i = 0; i < a->tensors.n; i++) {
        const struct named_tensor *one = &a->tensors.items[i], *other = NULL;
        for (size_t k = 0; k < b->tensors.n && !other; k++)
            if (!strcmp(b->tensors.items[k].name, one->name))
                other = &b->tensors.items[k];
        must(other && tensor_equal(&one->tensor, &other->tensor));
    }
}

static void write_and_read(struct archive *archive)
{
    struct error err = ERROR_INIT;
    struct archive back;
    char *bytes;
    size_t n;
    FILE *file = open_memstream(&bytes, &n);
    struct archive_entry *entries = mem_array(archive->tensors.n + 1, sizeof *entries);
    for (size_t i = 0; i < archive->tensors.n; i++) {
        const struct named_tensor *t = &archive->tensors.items[i];
        entries[i] = (struct archive_entry){t->name, t->tensor.type, t->tensor.shape,
                                            tensor_bytes(&t->tensor)};
    }
    const struct archive_input input = {entries, archive->tensors.n, read_one, archive};
    must(!safetensors_write(file, &input, &err));
    fclose(file);
    must(!safetensors_read_memory(bytes, n, "back", &back, &err));
    compare(archive, &back);
    archive_release(&back);
    mem_free(entries);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = ERROR_INIT;
    struct archive archive;
    struct str file = STR_INIT, text = STR_INIT;
    const uint8_t *header;
    uint64_t n = take_part(&data, &size, &header);
    str_append_bytes(&file, &n, sizeof n);
    str_append_bytes(&file, header, n);
    str_append_bytes(&file, data, size);
    if (!safetensors_read_memory(file.data, file.n, "fuzz", &archive, &err)) {
        for (size_t i = 0; i < archive.tensors.n; i++)
            tensor_print(&text, &archive.tensors.items[i].tensor, 1000);
        write_and_read(&archive);
        archive_release(&archive);
    }
    str_release(&text);
    str_release(&file);
    return 0;
}
