/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding kernels in the table.
 */
#include "exec/kernel.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Whether `type` is among "float32|float64" (ended by a blank or the end). */
static bool type_listed(const char *list, enum dtype type)
{
    const char *name = dtype_name(type);
    size_t n = strlen(name);
    for (;;) {
        size_t length = strcspn(list, "| ");
        if (length == n && !memcmp(list, name, n))
            return true;
        if (list[length] != '|')
            return false;
        list += length + 1;
    }
}

/* Whether the node's type attributes are among those of "T=float32|float64 Tidx=int32". */
static bool types_fit(const char *types, const struct node *node)
{
    while (types && *types) {
        size_t name = strcspn(types, "="), end = strcspn(types, " ");
        bool found = false;
        for (int i = 0; i < node->n_attrs && !found; i++) {
            const struct attr *attr = &node->attrs[i];
            if (strlen(attr->name) == name && !memcmp(attr->name, types, name)) {
                if (attr->value.kind != ATTR_TYPE ||
                    !type_listed(types + name + 1, attr->value.type))
                    return false;
                found = true;
            }
        }
        if (!found)
            return false;
        types += end;
        while (*types == ' ')
            types++;
    }
    return true;
}

const struct kernel_row *kernel_find(const struct kernel_table *table, const struct node *node,
                                     const char *device)
{
    const char *op = node->op->def->name;
    for (size_t i = 0; i < table->n; i++) {
        const struct kernel_row *row = &table->rows[i];
        if (row->op[0] == op[0] && !strcmp(row->op, op) && !strcmp(row->device, device) &&
            types_fit(row->types, node))
            return row;
    }
    return NULL;
}

bool kernel_exists(const struct kernel_table *table, const char *op, const char *device)
{
    for (size_t i = 0; i < table->n; i++)
        if (!strcmp(table->rows[i].op, op) && !strcmp(table->rows[i].device, device))
            return true;
    return false;
}

int kernel_fail(struct kernel_call *call, const char *format, ...)
{
    char text[700];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return error_set(call->err, ERR_DATA, "%s", text);
}

int kernel_setup_fail(struct kernel_setup *setup, const char *format, ...)
{
    char text[700];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return error_set(setup->err, ERR_DATA, "%s", text);
}
