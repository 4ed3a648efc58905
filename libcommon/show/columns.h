/* SPDX-License-Identifier: Apache-2.0
 *
 * Text in columns, each as wide as its widest cell, two blanks apart. For cut(1) and for people.
 */
#ifndef TF_SHOW_COLUMNS_H
#define TF_SHOW_COLUMNS_H

#include "base/str.h"
#include <stdbool.h>

struct columns {
    int n;            /* cells per row */
    struct str cells; /* each NUL-terminated, row after row */
};

void columns_add(struct columns *columns, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends all rows and empties the table. */
void columns_print(struct columns *columns, struct str *out);

#endif
