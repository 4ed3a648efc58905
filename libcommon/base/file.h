/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TF_BASE_FILE_H
#define TF_BASE_FILE_H

#include "base/error.h"
#include "base/str.h"

/* Appends what is in a file. ERR_NOINPUT when it cannot be read; ERR_DATA when it is a directory,
 * or the text gets longer than `most` bytes. */
int file_read(const char *path, size_t most, struct str *text, struct error *err);

/* What errno says of a file that could not be opened: ERR_NOINPUT, there is none; ERR_DENIED;
 * ERR_IO. */
int file_error_code(void);

#endif
