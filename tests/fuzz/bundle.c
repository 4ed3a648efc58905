/* SPDX-License-Identifier: Apache-2.0
 *
 * TensorFlow's checkpoints: either refused, or read to tensors that can be printed. The first byte
 * says whether what follows is the index whole, or the entries of its one block: then the rest of
 * it, with right sums, is put around them. The data file comes last.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "checkpoint/formats/bundle.h"
#include "checkpoint/formats/bundle_private.h"
#include "lib/fuzz_stream.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/dev/shm/tf-fuzz-XXXXXX";
static char index_path[64], data_path[64];

static void clean(void)
{
    unlink(index_path);
    unlink(data_path);
    rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    if (!mkdtemp(folder) || atexit(clean))
        abort();
    snprintf(index_path, sizeof index_path, "%s/x.index", folder);
    snprintf(data_path, sizeof data_path, "%s/x.data-00000-of-00001", folder);
    return 0;
}

static void append_varint(struct str *s, uint64_t value)
{
    for (; value > 127; value >>= 7)
        str_append_char(s, (char)(value | 128));
    str_append_char(s, (char)value);
}

/* Entries, an empty list of those that are told whole, type and sum; *handle gets where. */
static void append_block(struct str *table, const void *entries, size_t n, struct str *handle)
{
    size_t begin = table->n;
    str_append_bytes(table, entries, n);
    str_append_bytes(table, "\0\0\0\0\0", 5);
    uint32_t sum = bundle_crc_mask(bundle_crc(0, table->data + begin, table->n - begin));
    str_append_bytes(table, &sum, sizeof sum);
    append_varint(handle, begin);
    append_varint(handle, n + 4);
}

static void append_table(struct str *table, const uint8_t *entries, size_t n)
{
    static const uint64_t magic = BUNDLE_MAGIC;
    struct str inner = STR_INIT, list = STR_INIT, footer = STR_INIT;
    append_block(table, entries, n, &inner);
    str_append_bytes(&list, "\0\1", 2); /* nothing shared, a key of one byte, the handle */
    append_varint(&list, inner.n);
    str_append_char(&list, '\x7f');
    str_append_bytes(&list, inner.data, inner.n);
    append_block(table, "", 0, &footer);
    append_block(table, list.data, list.n, &footer);
    while (footer.n < BUNDLE_FOOTER_BYTES - sizeof magic)
        str_append_char(&footer, '\0');
    str_append_bytes(&footer, &magic, sizeof magic);
    str_append_bytes(table, footer.data, footer.n);
    str_release(&inner);
    str_release(&list);
    str_release(&footer);
}

static void write_file(const char *path, const void *data, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, n) != (ssize_t)n || close(fd))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = ERROR_INIT;
    struct archive archive;
    struct str table = STR_INIT, text = STR_INIT;
    const uint8_t *part;
    if (!size)
        return 0;
    bool whole = *data++ & 1;
    size--;
    size_t n = take_part(&data, &size, &part);
    if (whole)
        str_append_bytes(&table, part, n);
    else
        append_table(&table, part, n);
    write_file(index_path, table.data, table.n);
    write_file(data_path, data, size);
    if (!bundle_read(index_path, &archive, &err)) {
        for (size_t i = 0; i < archive.tensors.n; i++)
            tensor_print(&text, &archive.tensors.items[i].tensor, 1000);
        archive_release(&archive);
    }
    str_release(&table);
    str_release(&text);
    return 0;
}
