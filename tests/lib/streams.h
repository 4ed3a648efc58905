/* SPDX-License-Identifier: Apache-2.0
 *
 * Small streams for the tests of reading and writing them.
 */
#ifndef TF_TESTS_STREAMS_H
#define TF_TESTS_STREAMS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "wire/record.h"

static inline void must(int status, const struct error *err)
{
    if (status)
        fail_msg("%s", err->text);
}

static inline void make_tensor(struct tensor *t, enum dtype type, const struct shape *shape)
{
    struct error err = ERROR_INIT;
    int64_t count = shape_count(shape);
    if (type == STRING) {
        const char **texts = mem_array((size_t)count, sizeof *texts);
        for (int64_t i = 0; i < count; i++)
            texts[i] = i % 3 ? "text" : "";
        must(tensor_from_strings(t, shape, texts, NULL, &err), &err);
        mem_free(texts);
        return;
    }
    must(tensor_alloc(t, type, shape, &err), &err);
    for (int64_t i = 0; i < count; i++)
        tensor_set_int64(t, i, i % 100);
}

/* A stream of one feed record with a scalar and a string tensor: all kinds of bytes that there are.
 */
static inline struct stream_writer *small_stream(void)
{
    struct error err = ERROR_INIT;
    struct stream_writer *writer = stream_writer_new_memory("test", 1);
    struct feed_position position = {"digits.csv", 3, 1437, 0xfedcba9876543210};
    struct named_tensor tensors[2] = {{.name = "x"}, {.name = "label"}};
    struct shape shape = shape_vector(2);
    make_tensor(&tensors[0].tensor, FLOAT32, &SHAPE_SCALAR);
    make_tensor(&tensors[1].tensor, STRING, &shape);
    must(stream_write_feed(writer, RECORD_FEED, 7, &position, tensors, 2, &err), &err);
    must(stream_finish(writer, &err), &err);
    tensor_release(&tensors[0].tensor);
    tensor_release(&tensors[1].tensor);
    return writer;
}

#endif
