/* SPDX-License-Identifier: Apache-2.0
 *
 * Buffered bytes from a file descriptor or from memory, for streams and other files.
 */
#ifndef TF_WIRE_INPUT_H
#define TF_WIRE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct input {
    int fd;              /* -1: memory */
    const uint8_t *data; /* the buffer, or the memory */
    uint8_t *buffer;     /* NULL: memory */
    size_t start, end;   /* what is buffered and not consumed */
    uint64_t offset;     /* bytes consumed */
    bool ended;
    bool wait_failed; /* the error is from `wait` or `grow`, not from the input */
    int (*wait)(void *context, struct error *);
    void *context;
    /* Called at the end of the input: returns 0 to try again, as a file may grow. NULL: never. */
    int (*grow)(void *context, struct error *);
    void *grow_context;
};

void input_init(struct input *in, int fd);
void input_init_memory(struct input *in, const void *data, size_t n);
void input_release(struct input *in);

/* Makes the next n bytes (n <= 64 KiB) contiguous at data + start. Sets *got to their number, less
 * than n only at the end of the input. ERR_IO. */
int input_peek(struct input *in, size_t n, size_t *got, struct error *err);

/* Copies or reads up to n bytes directly to `out`; at least one unless the input has ended. */
int input_read(struct input *in, void *out, size_t n, size_t *got, struct error *err);

/* Returns false if certainly fewer than n bytes are left; asked before memory is allocated. */
bool input_may_have(const struct input *in, uint64_t n);

/* Returns how many bytes are buffered at data + start. */
static inline size_t input_ready(const struct input *in)
{
    return in->end - in->start;
}

#endif
