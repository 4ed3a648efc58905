/* SPDX-License-Identifier: Apache-2.0
 *
 * Names in manifests. As they are shown on terminals, unprintable names are refused when they are
 * saved; when read back, they would count as damage.
 */
#include <stdio.h>
#include <string.h>

#include "checkpoint/store/manifest.h"
#include "wire/limits.h"

#define SHOWN_BYTES 60 /* shown of a refused name */

bool ckpt_name_fits(const char *name)
{
    size_t n = strlen(name);
    return n <= LIMIT_NAME_BYTES && str_is_printable(name, n);
}

static int check(const char *what, const char *name, struct error *err)
{
    if (ckpt_name_fits(name))
        return 0;
    char shown[4 * SHOWN_BYTES + 1] = "";
    size_t n = strlen(name), used = 0;
    for (size_t i = 0; i < n && i < SHOWN_BYTES; i++) {
        unsigned char c = (unsigned char)name[i];
        bool plain = c >= ' ' && c < 0x7f && c != '\\';
        used += (size_t)snprintf(shown + used, sizeof shown - used, plain ? "%c" : "\\x%02x", c);
    }
    if (n > LIMIT_NAME_BYTES)
        return error_set(err, ERR_DATA, "%s '%s...' has a name of %zu bytes; %zu are allowed", what,
                         shown, n, LIMIT_NAME_BYTES);
    return error_set(err, ERR_DATA, "%s '%s%s' has a name that cannot be printed", what, shown,
                     n > SHOWN_BYTES ? "..." : "");
}

int ckpt_manifest_check_names(const struct ckpt_manifest *m, struct error *err)
{
    vec_each(t, &m->tensors)
        if (check("tensor", t->name, err) || check("the container", t->container, err) ||
            (t->slice.of && check("the table", t->slice.of, err)))
            return err->code;
    for (size_t i = 0; i < m->scalars.n; i++)
        if (check("scalar", m->scalars.items[i].name, err))
            return err->code;
    for (size_t i = 0; i < m->blobs.n; i++)
        if (check("blob", m->blobs.items[i].name, err))
            return err->code;
    for (size_t i = 0; i < m->shards.n; i++)
        if (check("shard", m->shards.items[i].name, err))
            return err->code;
    return 0;
}
