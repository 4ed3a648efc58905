/* SPDX-License-Identifier: Apache-2.0
 *
 * Buffered bytes from a file descriptor or from memory, for stream_reader.
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
    bool wait_failed; /* an error is that of `wait` or `grow`, not of the input */
    int (*wait)(void *context, struct error *);
    void *context;
    /* Where the input ends: returns 0 to look again, as the file grows. NULL: it ended. */
    int (*grow)(void *context, struct error *);
    void *grow_context;
};

void input_init(struct input *in, int fd);
void input_init_memory(struct input *in, const void *data, size_t n);
void input_release(struct input *in);

/* Makes the next n bytes (n <= 64 KiB) contiguous at data + start. Sets *got to how many there are:
 * fewer than n only at the end of the input. ERR_IO. */
int input_peek(struct input *in, size_t n, size_t *got, struct error *err);
void input_skip(struct input *in, size_t n);

/* Copies or reads up to n bytes, at least one unless the input ended, straight to `out`. */
int input_read(struct input *in, void *out, size_t n, size_t *got, struct error *err);

/* False when it is certain that fewer than n bytes are left: before memory is taken for them. */
bool input_may_have(const struct input *in, size_t n);
bool input_fd_may_have(int fd, uint64_t n);

#endif
