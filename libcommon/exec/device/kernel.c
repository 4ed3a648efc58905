/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding kernels in the table, and reading their rows.
 */
#include "exec/device/kernel.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Returns the types that "float32|integer" stands for, up to a blank or the end. */
static dtype_set listed(const char *list)
{
    dtype_set set = 0;
    while (*list && *list != ' ') {
        size_t length = strcspn(list, "| ");
        set |= dtype_set_of(list, length);
        list += length + (list[length] == '|');
    }
    return set;
}

/* Returns whether the node's type attributes are among those of "T=float32|float64 Tidx=int32". */
static bool types_fit(const char *types, const struct node *node)
{
    while (types && *types) {
        size_t name = strcspn(types, "=");
        int at = 0;
        while (at < node->n_attrs && (strlen(node->attrs[at].name) != name ||
                                      memcmp(node->attrs[at].name, types, name) != 0))
            at++;
        if (at == node->n_attrs || node->attrs[at].value.kind != ATTR_TYPE ||
            !(listed(types + name + 1) & DTYPE_BIT(node->attrs[at].value.type)))
            return false;
        types += strcspn(types, " ");
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

/* Types of rows; a row that names none takes all declared ones. */
dtype_set kernel_types(const struct kernel_table *table, const struct op *op,
                       const struct op_attr *attr, const char *device)
{
    dtype_set set = 0;
    size_t n = strlen(attr->name);
    for (size_t i = 0; i < table->n; i++) {
        const char *p = table->rows[i].types;
        if (strcmp(table->rows[i].op, op->def->name) != 0 ||
            strcmp(table->rows[i].device, device) != 0)
            continue;
        while (p && (strncmp(p, attr->name, n) || p[n] != '='))
            p = (p = strchr(p, ' ')) ? p + 1 : NULL;
        set |= p ? listed(p + n + 1) & attr->types : attr->types;
    }
    return set;
}

bool kernel_exists(const struct kernel_table *table, const char *op, const char *device)
{
    for (size_t i = 0; i < table->n; i++)
        if (!strcmp(table->rows[i].op, op) && !strcmp(table->rows[i].device, device))
            return true;
    return false;
}

/* ---- places of arguments ---- */

/* Returns whether the i-th tensor of the arguments is on the host. */
static bool on_host(const char *names, const struct node *node, const struct op_arg *args, int i)
{
    const struct op_arg *arg = &args[node_argument(node, args, &i)];
    const struct op_attr *attrs = node->op->attrs;
    enum dtype type = arg->type;
    if (arg->type_list_attr >= 0)
        type = node_attr(node, attrs[arg->type_list_attr].name)->types[i];
    else if (arg->type_attr >= 0)
        type = node_type(node, attrs[arg->type_attr].name);
    bool is_named = false; /* among "begin size"; "*" names all */
    for (size_t length; names && *names && !is_named; names += length + (names[length] == ' ')) {
        length = strcspn(names, " ");
        is_named =
            *names == '*' || (length == strlen(arg->name) && !memcmp(names, arg->name, length));
    }
    return !arg->is_ref && (type == STRING || type == RESOURCE || is_named);
}

bool kernel_input_on_host(const struct kernel_row *row, const struct node *node, int i)
{
    return on_host(row->host_inputs, node, node->op->inputs, i);
}

bool kernel_output_on_host(const struct kernel_row *row, const struct node *node, int i)
{
    return on_host(row->host_outputs, node, node->op->outputs, i);
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

void kernel_done(struct kernel_call *call, int result)
{
    struct executor *executor = call->executor;
    executor->done(executor, result);
}
