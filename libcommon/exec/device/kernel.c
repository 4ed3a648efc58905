/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding kernels in the table, and reading their rows.
 */
#include "exec/device/kernel.h"

#include <string.h>

/* Returns the types of an attribute in "T=float32|floating Tidx=int32"; all, if it is not there. */
static dtype_set types_of(const char *types, const char *attr)
{
    size_t n = strlen(attr);
    dtype_set set = 0;
    while (types && (strncmp(types, attr, n) != 0 || types[n] != '='))
        types = (types = strchr(types, ' ')) ? types + 1 : NULL;
    if (!types)
        return (dtype_set)-1;
    for (const char *list = types + n + 1; *list && *list != ' '; list += *list == '|') {
        size_t length = strcspn(list, "| ");
        set |= dtype_set_of(list, length);
        list += length;
    }
    return set;
}

static bool types_fit(const char *types, const struct node *node)
{
    bool fit = true;
    for (int i = 0; i < node->n_attrs && types && fit; i++)
        fit = node->attrs[i].value.kind != ATTR_TYPE ||
              types_of(types, node->attrs[i].name) & DTYPE_BIT(node->attrs[i].value.type);
    return fit;
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

dtype_set kernel_types(const struct kernel_table *table, const struct op *op,
                       const struct op_attr *attr, const char *device)
{
    dtype_set set = 0;
    for (size_t i = 0; i < table->n; i++)
        if (!strcmp(table->rows[i].op, op->def->name) && !strcmp(table->rows[i].device, device))
            set |= types_of(table->rows[i].types, attr->name) & attr->types;
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

bool kernel_on_host(const char *names, const struct node *node, const struct op_arg *args, int i)
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

void kernel_done(struct kernel_call *call, int result)
{
    struct executor *executor = call->executor;
    executor->done(executor, result);
}
