/* SPDX-License-Identifier: Apache-2.0
 *
 * Graph records: the input is the header of one, whose tensors are two small constants. What is
 * accepted is written, and read again to the same text.
 */
#include <string.h>

#include "graph/graph_io.h"
#include "graph/text.h"
#include "ops/ops.h"
#include "wire/header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print(struct str *out, const struct graph *graph)
{
    struct error err = ERROR_INIT;
    if (graph_print_text(out, graph, NULL, &err))
        error_bug(__FILE__, __LINE__, err.text);
}

static void round_trip(const struct graph *graph)
{
    struct error err = ERROR_INIT;
    struct str first = STR_INIT, second = STR_INIT;
    struct stream_writer *writer = stream_writer_new_memory("fuzz", 1);
    struct graph *again;
    size_t n;
    if (graph_write(writer, graph, &err) || stream_finish(writer, &err))
        error_bug(__FILE__, __LINE__, err.text);
    const void *bytes = stream_writer_bytes(writer, &n);
    struct stream_reader *reader = stream_reader_new_memory(bytes, n, "fuzz");
    if (graph_read(reader, ops_registry(), &again, &err))
        error_bug(__FILE__, __LINE__, err.text);
    print(&first, graph);
    print(&second, again);
    if (strcmp(str_text(&first), str_text(&second)) != 0)
        error_bug(__FILE__, __LINE__, "the texts differ");
    graph_free(again);
    stream_reader_free(reader);
    stream_writer_free(writer);
    str_release(&first);
    str_release(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = ERROR_INIT;
    float value = 0.5f;
    int32_t shape[] = {2, 3};
    struct shape pair = shape_vector(2);
    struct named_tensor tensors[] = {{"a", tensor_borrow(FLOAT32, &SHAPE_SCALAR, &value)},
                                     {"b", tensor_borrow(INT32, &pair, shape)}};
    struct record record = {.kind = RECORD_GRAPH, .tensors = tensors, .n_tensors = 2};
    struct graph *graph;
    msgpack_unpacked unpacked;
    size_t at = 0, n_objects;
    if (header_measure(data, size, &n_objects, &err))
        return 0;
    msgpack_unpacked_init(&unpacked);
    if (msgpack_unpack_next(&unpacked, (const char *)data, size, &at) == MSGPACK_UNPACK_SUCCESS) {
        record.header = unpacked.data;
        if (!graph_from_record(ops_registry(), &record, &graph, &err)) {
            round_trip(graph);
            graph_free(graph);
        }
    }
    msgpack_unpacked_destroy(&unpacked);
    return 0;
}
