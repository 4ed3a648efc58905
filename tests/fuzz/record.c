/* SPDX-License-Identifier: Apache-2.0
 *
 * Record streams. A fuzzer does not find a checksum, so the input is read twice: as it is, and as a
 * list of frames (two bytes that say how many bytes of header follow, these, and the same for the
 * body) that are put behind a hello without sums of bodies, each header with its right checksum.
 */
#include <string.h>

#include "lib/fuzz_stream.h"
#include "wire/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void assemble(struct str *stream, const uint8_t *data, size_t size)
{
    static const char hello[] = "\x85\xa4kind\xa5hello\xa5major\x01\xa5minor\x00\xa4sums\xc2";
    append_header(stream, hello, sizeof hello - 1);
    append_records(stream, data, size);
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
