/* SPDX-License-Identifier: Apache-2.0
 *
 * This does not use zlib's gzread, which fills the caller's whole buffer before it returns and so
 * would hold back the lines of a live pipe.
 */
#include "wire/gzfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "wire/codec.h"
#include "wire/input.h"

#define FIRST_BYTES ((size_t)1 << 20)
#define WINDOW_BYTES 32768 /* output that zlib may hold back */

struct gzfile {
    char *name;
    struct input in;           /* the bytes as they are in the file */
    bool decided;              /* whether `codec` is known */
    const struct codec *codec; /* NULL: the bytes are not compressed */
    void *decoder;
    bool in_member; /* the input must not end here */
    uint64_t offset;
    int (*wait)(void *context, struct error *err);
    void *wait_context;
    int stop_fd;    /* -1: none */
    size_t ahead_n; /* bytes that were peeked at */
    char ahead[GZFILE_AHEAD];
};

/* Called before each read, which waits until there is input, or until another thread wants the
 * reading to stop. */
static int before_read(void *context, struct error *err)
{
    struct gzfile *file = context;
    struct pollfd fds[] = {{.fd = file->in.fd, .events = POLLIN},
                           {.fd = file->stop_fd, .events = POLLIN}};
    if (file->wait && poll(fds, 1, 0) == 0 && file->wait(file->wait_context, err))
        return err->code;
    int n_ready = 0;
    while (file->stop_fd >= 0 && (n_ready = poll(fds, 2, -1)) < 0 && errno == EINTR)
        ; /* the read will report any other failure */
    if (n_ready > 0 && fds[1].revents)
        return error_set(err, ERR_CANCELLED, "%s: stopped", file->name);
    return 0;
}

int gzfile_open(const char *path, struct gzfile **file, struct error *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, file_error_code(), "%s", path);
    struct stat status;
    if (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
        if (!is_stdin)
            close(fd);
        return error_set(err, ERR_DATA, "%s: is a directory", is_stdin ? "stdin" : path);
    }
    *file = gzfile_open_memory(NULL, 0, is_stdin ? "stdin" : path);
    input_init(&(*file)->in, fd);
    (*file)->in.wait = before_read;
    (*file)->in.context = *file;
    return 0;
}

struct gzfile *gzfile_open_memory(const void *data, size_t n, const char *name)
{
    struct gzfile *file = mem_alloc(sizeof *file);
    file->name = mem_strdup(name);
    file->stop_fd = -1;
    input_init_memory(&file->in, data, n);
    return file;
}

void gzfile_close(struct gzfile *file)
{
    if (!file)
        return;
    if (file->codec)
        file->codec->close(file->decoder);
    if (file->in.fd > STDIN_FILENO)
        close(file->in.fd);
    input_release(&file->in);
    mem_free(file->name);
    mem_free(file);
}

const char *gzfile_name(const struct gzfile *file)
{
    return file->name;
}

void gzfile_on_wait(struct gzfile *file, int (*wait)(void *context, struct error *err),
                    void *context)
{
    file->wait = wait;
    file->wait_context = context;
}

void gzfile_stop_on(struct gzfile *file, int fd)
{
    file->stop_fd = fd;
}

uint64_t gzfile_offset(const struct gzfile *file)
{
    return file->offset;
}

/* Prefixes the name to an error of `in`, unless it is the caller's own. */
static int prefix_name(const struct gzfile *file, struct error *err)
{
    return file->in.wait_failed ? err->code : error_prefix(err, "%s: ", file->name);
}

/* Appends raw input to what is buffered, unless it has ended. */
static int refill(struct gzfile *file, struct error *err)
{
    size_t got;
    return input_peek(&file->in, input_ready(&file->in) + 1, &got, err) ? prefix_name(file, err)
                                                                        : 0;
}

static const struct codec *find_codec(const struct gzfile *file, bool *may_be)
{
    return codec_find(file->in.data + file->in.start, input_ready(&file->in), may_be);
}

/* Reads as many bytes as are needed to detect the compression. */
static int detect_format(struct gzfile *file, struct error *err)
{
    bool may_be = true;
    const struct codec *codec = NULL;
    for (;;) {
        if (input_ready(&file->in))
            codec = find_codec(file, &may_be);
        if (codec || !may_be || file->in.ended)
            break;
        if (refill(file, err))
            return err->code;
    }
    file->decided = true;
    if (!codec)
        return 0;
    file->decoder = codec->open();
    if (!file->decoder && codec->library)
        return error_set(err, ERR_UNAVAILABLE, "%s: is packed with %s: %s cannot be loaded",
                         file->name, codec->name, codec->library);
    if (!file->decoder)
        return error_set(err, ERR_OS, "%s: no memory to unpack %s", file->name, codec->name);
    file->codec = codec;
    file->in_member = true;
    return 0;
}

/* Begins the member that follows the one that has ended: another one, padding with zeros, or the
 * end may. Does nothing if more input is needed. */
static int begin_member(struct gzfile *file, struct error *err)
{
    struct input *in = &file->in;
    bool may_be;
    while (input_ready(in) && !in->data[in->start])
        in->start++;
    if (!input_ready(in))
        return 0;
    const struct codec *codec = find_codec(file, &may_be);
    if (!codec && may_be && !in->ended)
        return 0;
    if (codec != file->codec)
        return error_set(err, ERR_DATA, "%s: garbage after the %s data", file->name,
                         file->codec->name);
    codec->reset(file->decoder);
    file->in_member = true;
    return 0;
}

/* Decodes what is buffered; the result may be 0 bytes if more input is needed. */
static int decode_more(struct gzfile *file, void *bytes, size_t n, size_t *got, struct error *err)
{
    struct input *in = &file->in;
    struct codec_step step = {in->data + in->start, input_ready(in), bytes, n};
    enum codec_status status = file->codec->step(file->decoder, &step);
    in->start = in->end - step.in_n;
    *got = n - step.out_n;
    file->in_member = status != CODEC_END;
    if (status == CODEC_MEMORY)
        return error_set(err, ERR_OS, "%s: no memory to unpack %s", file->name, file->codec->name);
    if (status == CODEC_DAMAGED)
        return error_set(err, ERR_DATA, "%s: damaged %s data after %" PRIu64 " bytes: %s",
                         file->name, file->codec->name, file->offset,
                         file->codec->why(file->decoder));
    return 0;
}

int gzfile_read(struct gzfile *file, void *bytes, size_t n, size_t *got, struct error *err)
{
    *got = 0;
    if (n == 0)
        return 0;
    if (file->ahead_n) {
        *got = n < file->ahead_n ? n : file->ahead_n;
        memcpy(bytes, file->ahead, *got);
        file->ahead_n -= *got;
        memmove(file->ahead, file->ahead + *got, file->ahead_n);
        return 0;
    }
    int code = file->decided ? 0 : detect_format(file, err);
    if (!code && !file->codec && input_read(&file->in, bytes, n, got, err))
        code = prefix_name(file, err);
    while (!code && file->codec) {
        bool was_in_member = file->in_member;
        code = was_in_member ? decode_more(file, bytes, n, got, err) : begin_member(file, err);
        if (code || *got)
            break;
        if (was_in_member != file->in_member)
            continue;
        if (file->in.ended && !file->in_member)
            return 0;
        if (file->in.ended)
            return error_set(err, ERR_DATA, "%s: truncated %s data after %" PRIu64 " bytes",
                             file->name, file->codec->name, file->offset);
        code = refill(file, err);
    }
    file->offset += *got;
    return code;
}

int gzfile_peek(struct gzfile *file, char *bytes, size_t n, size_t *got, struct error *err)
{
    size_t part = 1;
    for (*got = 0; part && *got < n; *got += part)
        if (gzfile_read(file, bytes + *got, n - *got, &part, err))
            return err->code;
    file->ahead_n = *got;
    memcpy(file->ahead, bytes, *got);
    return 0;
}

int gzfile_read_exact(struct gzfile *file, void *bytes, size_t n, struct error *err)
{
    for (size_t done = 0; done < n;) {
        size_t got;
        int code = gzfile_read(file, (char *)bytes + done, n - done, &got, err);
        if (code)
            return code;
        if (got == 0)
            return error_set(err, ERR_DATA, "%s: truncated after %" PRIu64 " bytes", file->name,
                             file->offset);
        done += got;
    }
    return 0;
}

int gzfile_read_all(struct gzfile *file, size_t most, uint8_t **data, size_t *n, struct error *err)
{
    size_t capacity = 0, got = 1;
    for (*data = NULL, *n = 0; got && *n < most; *n += got) {
        if (*n == capacity) {
            capacity = capacity ? capacity * 2 : FIRST_BYTES;
            capacity = capacity < most ? capacity : most;
            uint8_t *grown = mem_try_grow(*data, *n, capacity);
            if (!grown)
                return error_set(err, ERR_OS, "%s: no memory for %zu bytes", gzfile_name(file),
                                 capacity);
            *data = grown;
        }
        if (gzfile_read(file, *data + *n, capacity - *n, &got, err))
            return err->code;
    }
    return 0;
}

bool gzfile_may_have(const struct gzfile *file, uint64_t n)
{
    uint64_t packed = n;
    if (file->codec)
        packed = n > WINDOW_BYTES ? (n - WINDOW_BYTES) / file->codec->ratio_max : 0;
    return input_may_have(&file->in, packed);
}
