/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes of a file, plain or packed with gzip, xz or zstd: the content decides, not the name. Reads
 * are never larger than what the system has ready, so that a pipe stays live: gzfile_read returns
 * as soon as it has at least one byte. Not thread-safe.
 */
#ifndef TF_WIRE_GZFILE_H
#define TF_WIRE_GZFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct gzfile;

/* Opens `path`; "-" is stdin. ERR_NOINPUT when it is missing, ERR_DATA for a directory, ERR_DENIED,
 * ERR_IO. Messages start with the name. */
int gzfile_open(const char *path, struct gzfile **file, struct error *err);

/* Reads on from where the descriptor stands, which it takes over. Never fails. */
struct gzfile *gzfile_open_fd(int fd, const char *name);

/* Reads from borrowed memory, for tests and fuzzing. Never fails. */
struct gzfile *gzfile_open_memory(const void *data, size_t n, const char *name);

void gzfile_close(struct gzfile *file); /* NULL is harmless */

/* "stdin" for "-". Borrowed from the file. */
const char *gzfile_name(const struct gzfile *file);

/* Called before a read that would block, with nothing at hand: a filter flushes its output there.
 */
void gzfile_on_wait(struct gzfile *file, int (*wait)(void *context, struct error *err),
                    void *context);

/* Ends a read that would block with ERR_CANCELLED as soon as `fd` can be read: how another thread
 * stops the one that reads. -1: never. */
void gzfile_stop_on(struct gzfile *file, int fd);

/* Up to n bytes; *got is 0 only at the end. ERR_DATA: truncated or damaged
 * packed data; ERR_UNAVAILABLE: no library to unpack it; ERR_IO. */
int gzfile_read(struct gzfile *file, void *bytes, size_t n, size_t *got, struct error *err);

/* Exactly n bytes. ERR_DATA "truncated after K bytes" when there are fewer. */
int gzfile_read_exact(struct gzfile *file, void *bytes, size_t n, struct error *err);

/* Reads all that is left; the memory is the caller's to mem_free, also after a failure. */
int gzfile_read_all(struct gzfile *file, uint8_t **data, size_t *n, struct error *err);

/* False when it is certain that fewer than n bytes are left: before memory is taken for them. Known
 * once something was read. */
bool gzfile_may_have(const struct gzfile *file, uint64_t n);

/* Unpacked bytes handed out so far. */
uint64_t gzfile_offset(const struct gzfile *file);

#endif
