/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes of a file, plain or compressed with gzip, xz or zstd: the content decides, not the name. No
 * read waits for more than the system has ready, so that a pipe stays live: gzfile_read returns as
 * soon as it has at least one byte. Not thread-safe.
 */
#ifndef TF_WIRE_GZFILE_H
#define TF_WIRE_GZFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct gzfile;

/* Opens `path`; "-" is stdin. ERR_NOINPUT if it is missing, ERR_DATA for a directory, ERR_DENIED,
 * ERR_IO. Messages start with the name. */
int gzfile_open(const char *path, struct gzfile **file, struct error *err);

/* Reads from borrowed memory, for tests and fuzzing. Never fails. */
struct gzfile *gzfile_open_memory(const void *data, size_t n, const char *name);

void gzfile_close(struct gzfile *file); /* NULL is harmless */

/* Returns the name, "stdin" for "-". Borrowed from the file. */
const char *gzfile_name(const struct gzfile *file);

/* Sets a function called before a read that would block: filters flush their output in it. */
void gzfile_on_wait(struct gzfile *file, int (*wait)(void *context, struct error *err),
                    void *context);

/* Makes a blocking read fail with ERR_CANCELLED as soon as `fd` is readable: so another thread can
 * stop the one that reads. -1: never. */
void gzfile_stop_on(struct gzfile *file, int fd);

/* Reads up to n bytes; *got is 0 only at the end. ERR_DATA: truncated or damaged compressed data;
 * ERR_UNAVAILABLE: no library to decode it; ERR_IO. */
int gzfile_read(struct gzfile *file, void *bytes, size_t n, size_t *got, struct error *err);

/* Gets the first n bytes, fewer at the end, which will be read again. At most GZFILE_AHEAD. */
#define GZFILE_AHEAD 64
int gzfile_peek(struct gzfile *file, char *bytes, size_t n, size_t *got, struct error *err);

/* Reads exactly n bytes. ERR_DATA "truncated after K bytes" if there are fewer. */
int gzfile_read_exact(struct gzfile *file, void *bytes, size_t n, struct error *err);

/* Reads the rest, but not more than `most` bytes, into memory that grows as they arrive. The caller
 * frees it with mem_free, also after a failure. */
int gzfile_read_all(struct gzfile *file, size_t most, uint8_t **data, size_t *n, struct error *err);

/* Returns false if certainly fewer than n bytes are left; asked before memory is allocated. Known
 * only after the first read. */
bool gzfile_may_have(const struct gzfile *file, uint64_t n);

/* Returns how many uncompressed bytes were read so far. */
uint64_t gzfile_offset(const struct gzfile *file);

#endif
