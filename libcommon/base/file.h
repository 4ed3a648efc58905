/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TF_BASE_FILE_H
#define TF_BASE_FILE_H

#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"

/* Appends what is in a file. ERR_NOINPUT when it cannot be read; ERR_DATA when it is a directory,
 * or the text gets longer than `most` bytes. */
int file_read(const char *path, size_t most, struct str *text, struct error *err);

/* Returns the code for errno after a file could not be opened: ERR_NOINPUT, there is none;
 * ERR_DENIED; ERR_IO. */
int file_error_code(void);

/* The same of one that could not be made or written: ERR_DENIED or ERR_IO. */
int file_write_error_code(void);

/* Reads n bytes at most, from byte `at` on, or, < 0, from so many before its end or from its
 * beginning. How many they were; 0, too, if it cannot be read. */
size_t file_read_part(const char *path, off_t at, void *bytes, size_t n);

/* Puts a file with this text, and this mode whatever the umask, in the place of another one, if
 * there is one: who reads it sees one of them, and all of it. One writer at a time: PATH.new is
 * its own. ERR_IO, and it is as before. */
int file_replace(const char *path, mode_t mode, const char *text, size_t n, struct error *err);

/* Closes a descriptor, if it is none of those < 0. */
void close_if_open(int fd);

#endif
