/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/input.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/memory.h"

#define BUFFER_BYTES ((size_t)64 << 10)

void input_init(struct input *in, int fd)
{
    memset(in, 0, sizeof *in);
    in->fd = fd;
    in->data = in->buffer = mem_alloc(BUFFER_BYTES);
}

void input_init_memory(struct input *in, const void *data, size_t n)
{
    memset(in, 0, sizeof *in);
    in->fd = -1;
    in->data = data;
    in->end = n;
    in->ended = true;
}

void input_release(struct input *in)
{
    mem_free(in->buffer);
}

static int read_vectors(struct input *in, struct iovec *vectors, int n, size_t *got,
                        struct error *err)
{
    *got = 0;
    if (in->wait && in->wait(in->context, err)) {
        in->wait_failed = true;
        return err->code;
    }
    for (;;) {
        ssize_t result = readv(in->fd, vectors, n);
        if (!result && in->grow) {
            if (!in->grow(in->grow_context, err))
                continue;
            in->wait_failed = true;
            return err->code;
        }
        if (result >= 0) {
            *got = (size_t)result;
            in->ended = !result;
            return 0;
        }
        if (errno == EAGAIN)
            poll(&(struct pollfd){.fd = in->fd, .events = POLLIN}, 1, -1);
        else if (errno != EINTR)
            return error_set_errno(err, ERR_IO, "reading");
    }
}

int input_peek(struct input *in, size_t n, size_t *got, struct error *err)
{
    while (input_ready(in) < n && !in->ended) {
        size_t more;
        if (in->start) {
            memmove(in->buffer, in->buffer + in->start, in->end - in->start);
            in->end -= in->start;
            in->start = 0;
        }
        struct iovec vector = {in->buffer + in->end, BUFFER_BYTES - in->end};
        if (read_vectors(in, &vector, 1, &more, err))
            return err->code;
        in->end += more;
    }
    *got = input_ready(in) < n ? input_ready(in) : n;
    return 0;
}

int input_read(struct input *in, void *out, size_t n, size_t *got, struct error *err)
{
    size_t ready = input_ready(in);
    if (!ready && !in->ended) {
        /* The same call reads the bytes after the n wanted ones into the buffer. */
        struct iovec vectors[2] = {{out, n}, {in->buffer, BUFFER_BYTES}};
        if (read_vectors(in, vectors, 2, got, err))
            return err->code;
        in->start = 0;
        in->end = *got > n ? *got - n : 0;
        *got -= in->end;
        in->offset += *got;
        return 0;
    }
    *got = ready < n ? ready : n;
    if (*got)
        memcpy(out, in->data + in->start, *got);
    in->start += *got;
    in->offset += *got;
    return 0;
}

bool input_may_have(const struct input *in, uint64_t n)
{
    struct stat status;
    size_t ready = input_ready(in);
    if (in->ended || n <= ready)
        return n <= ready;
    off_t at = lseek(in->fd, 0, SEEK_CUR);
    if (in->grow || at < 0 || fstat(in->fd, &status) || !S_ISREG(status.st_mode))
        return true;
    return at <= status.st_size && n - ready <= (uint64_t)(status.st_size - at);
}
