/* SPDX-License-Identifier: Apache-2.0
 *
 * Record streams. A fuzzer does not find a checksum, so the input is read twice: as it is, and as a
 * list of frames (two bytes that say how many bytes of header follow, these, and the same for the
 * body) that are put behind a hello without sums of bodies, each header with its right checksum.
 */
#include <string.h>

#include "base/map.h"
#include "wire/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void append_header(struct str *stream, const void *header, size_t n)
{
    uint8_t prefix[5] = {0xce}, sum[9] = {0xcf};
    size_t total = n + 4 + sizeof sum;
    struct str whole = STR_INIT;
    str_append_bytes(&whole, header, n);
    str_append_bytes(&whole, "\xa3sum", 4);
    uint64_t hash = hash_bytes(whole.data, whole.n, 0);
    for (int i = 0; i < 4; i++)
        prefix[1 + i] = (uint8_t)(total >> (24 - 8 * i));
    for (int i = 0; i < 8; i++)
        sum[1 + i] = (uint8_t)(hash >> (56 - 8 * i));
    str_append_bytes(stream, prefix, sizeof prefix);
    str_append_bytes(stream, whole.data, whole.n);
    str_append_bytes(stream, sum, sizeof sum);
    str_release(&whole);
}

/* Takes two bytes of length and what they announce. */
static size_t take(const uint8_t **data, size_t *size, const uint8_t **part)
{
    size_t n = *size < 2 ? 0 : (size_t)(*data)[0] << 8 | (*data)[1];
    size_t skipped = *size < 2 ? *size : 2;
    n = n < *size - skipped ? n : *size - skipped;
    *part = *data + skipped;
    *data += skipped + n;
    *size -= skipped + n;
    return n;
}

static void assemble(struct str *stream, const uint8_t *data, size_t size)
{
    static const char hello[] = "\x85\xa4kind\xa5hello\xa5major\x01\xa5minor\x00\xa4sums\xc2";
    append_header(stream, hello, sizeof hello - 1);
    while (size) {
        const uint8_t *part;
        size_t n = take(&data, &size, &part);
        append_header(stream, part, n);
        n = take(&data, &size, &part);
        str_append_bytes(stream, part, n);
    }
}

static void read_stream(const void *bytes, size_t n)
{
    struct error err = ERROR_INIT;
    struct stream_reader *reader = stream_reader_new_memory(bytes, n, "fuzz");
    struct record record = {0};
    struct feed_position position;
    struct str text = STR_INIT;
    bool more = true;
    while (!stream_read(reader, &record, &more, &err) && more) {
        record_get_position(&record, &record.arena, &position);
        for (int i = 0; i < record.n_tensors; i++)
            tensor_print(&text, &record.tensors[i].tensor, 100);
        str_clear(&text);
    }
    str_release(&text);
    record_release(&record);
    stream_reader_free(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str stream = STR_INIT;
    read_stream(data, size);
    assemble(&stream, data, size);
    read_stream(stream.data, stream.n);
    str_release(&stream);
    return 0;
}
