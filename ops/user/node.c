/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes of a node, and shapes, as functions of custom ops see them.
 */
#include "ops/user/internal.h"

#define SAME(public, own)                                                                          \
    _Static_assert((int)(public) == (int)(own), "types have the numbers of the public header")
SAME(TF_FLOAT32, FLOAT32);
SAME(TF_FLOAT64, FLOAT64);
SAME(TF_INT32, INT32);
SAME(TF_UINT8, UINT8);
SAME(TF_INT16, INT16);
SAME(TF_INT8, INT8);
SAME(TF_STRING, STRING);
SAME(TF_COMPLEX64, COMPLEX64);
SAME(TF_INT64, INT64);
SAME(TF_BOOL, BOOL);
SAME(TF_BFLOAT16, BFLOAT16);
SAME(TF_UINT16, UINT16);
SAME(TF_FLOAT16, FLOAT16);
SAME(TF_UINT32, UINT32);
SAME(TF_UINT64, UINT64);
_Static_assert(TF_RANK_MAX == SHAPE_RANK_MAX && TF_UNKNOWN == SHAPE_UNKNOWN, "shapes, too");

struct tf_shape user_shape_out(const struct shape *shape)
{
    struct tf_shape out = {.rank = shape->rank};
    for (int i = 0; i < shape->rank; i++)
        out.dims[i] = shape->dims[i];
    return out;
}

bool user_shape_in(const struct tf_shape *shape, bool is_value, struct shape *result)
{
    int64_t least = is_value ? 0 : SHAPE_UNKNOWN;
    *result = SHAPE_ANY;
    if (shape->rank < least || shape->rank > SHAPE_RANK_MAX)
        return false;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < least)
            return false;
        result->dims[i] = shape->dims[i];
    }
    result->rank = shape->rank;
    return !is_value || shape_count(result) >= 0;
}

const char *user_node_name(const tf_node *node)
{
    return node->node->name;
}

static const struct attr_value *find(const tf_node *node, const char *name, enum attr_kind kind)
{
    const struct attr_value *value = node_attr(node->node, name);
    return value && value->kind == kind ? value : NULL;
}

int user_node_int(const tf_node *node, const char *name, int64_t *value)
{
    const struct attr_value *found = find(node, name, ATTR_INT);
    if (found)
        *value = found->i;
    return found != NULL;
}

int user_node_float(const tf_node *node, const char *name, double *value)
{
    const struct attr_value *found = find(node, name, ATTR_FLOAT);
    if (found)
        *value = found->f;
    return found != NULL;
}

int user_node_bool(const tf_node *node, const char *name, int *value)
{
    const struct attr_value *found = find(node, name, ATTR_BOOL);
    if (found)
        *value = found->b;
    return found != NULL;
}

const char *user_node_string(const tf_node *node, const char *name)
{
    const struct attr_value *found = find(node, name, ATTR_STRING);
    return found ? found->s : NULL;
}

enum tf_type user_node_type(const tf_node *node, const char *name)
{
    const struct attr_value *found = find(node, name, ATTR_TYPE);
    return found ? (enum tf_type)found->type : TF_INVALID;
}

int user_node_shape(const tf_node *node, const char *name, struct tf_shape *value)
{
    const struct attr_value *found = find(node, name, ATTR_SHAPE);
    if (found)
        *value = user_shape_out(found->shape);
    return found != NULL;
}

const int64_t *user_node_ints(const tf_node *node, const char *name, int *n)
{
    const struct attr_value *found = find(node, name, ATTR_LIST_INT);
    *n = found ? found->n : 0;
    return found ? found->ints : NULL;
}
