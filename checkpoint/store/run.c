/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint/store/run.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define SHORT_DIGITS 8

int run_make(struct ckpt_run *run, const char *name, struct error *err)
{
    *run = (struct ckpt_run){.name = ""};
    if (getrandom(run->id, sizeof run->id, 0) != sizeof run->id)
        return error_set_errno(err, ERR_OS, "getrandom");
    run->id[0] |= 1; /* an id of zero means none */
    return run_set_name(run, name, err);
}

int run_set_name(struct ckpt_run *run, const char *name, struct error *err)
{
    size_t n = name ? strlen(name) : 0;
    if (!name)
        return 0;
    if (!n || n > RUN_NAME_BYTES_MAX || strchr(name, ' ') || !str_is_printable(name, n))
        return error_set(err, ERR_USAGE, "--run-name: 1 to %d bytes, fit to print and no blanks",
                         RUN_NAME_BYTES_MAX);
    memcpy(run->name, name, n + 1);
    return 0;
}

bool run_is_known(const struct ckpt_run *run)
{
    static const uint8_t none[RUN_BYTES];
    return memcmp(run->id, none, RUN_BYTES) != 0;
}

bool run_equal(const struct ckpt_run *a, const struct ckpt_run *b)
{
    return !memcmp(a->id, b->id, RUN_BYTES);
}

void run_hex(const struct ckpt_run *run, char text[RUN_HEX_BYTES])
{
    for (int i = 0; i < RUN_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", run->id[i]);
}

bool run_parse(const char *text, struct ckpt_run *run)
{
    bool fits = strlen(text) == 2 * RUN_BYTES && !text[strspn(text, "0123456789abcdef")];
    for (int i = 0; fits && i < RUN_BYTES; i++)
        sscanf(text + 2 * i, "%2hhx", &run->id[i]);
    return fits;
}

void run_print(const struct ckpt_run *run, struct str *out)
{
    char hex[RUN_HEX_BYTES];
    run_hex(run, hex);
    if (!run_is_known(run))
        str_append_char(out, '-');
    else if (*run->name)
        str_printf(out, "%s/%.*s", run->name, SHORT_DIGITS, hex);
    else
        str_printf(out, "%.*s", SHORT_DIGITS, hex);
}
