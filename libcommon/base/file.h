/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TF_BASE_FILE_H
#define TF_BASE_FILE_H

#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"

/* Appends the contents of a file. ERR_NOINPUT if it cannot be read; ERR_DATA if it is a directory
 * or the text would exceed `most` bytes. */
int file_read(const char *path, size_t most, struct str *text, struct error *err);

/* Returns the code for errno after a file could not be opened: ERR_NOINPUT if it does not exist;
 * ERR_DENIED; ERR_IO. */
int file_error_code(void);

/* The same for a file that could not be created or written: ERR_DENIED or ERR_IO. */
int file_write_error_code(void);

/* Reads up to n bytes from offset `at`. A negative `at` counts from the end of the file, but not
 * before its beginning. Returns the number of bytes read; 0 also if the file cannot be read. */
size_t file_read_part(const char *path, off_t at, void *bytes, size_t n);

/* Creates or atomically replaces a file with this text and, whatever the umask, this mode: a reader
 * sees either the old file or all of the new one. One writer at a time, as the temporary file is
 * PATH.new. ERR_IO: the old file is unchanged. */
int file_replace(const char *path, mode_t mode, const char *text, size_t n, struct error *err);

/* Synchronises the names in a folder with the disk, where that is possible. */
void file_sync_folder(const char *folder);

/* Closes a descriptor unless it is negative. */
void close_if_open(int fd);

#endif
