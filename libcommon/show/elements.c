/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>

#include "show/show.h"

void show_summary(struct str *line, const struct tensor *t)
{
    int64_t count = tensor_count(t), n = 0, n_nan = 0, n_infinite = 0;
    if (count == 0 || t->type == STRING || t->type == COMPLEX64 || t->type == RESOURCE) {
        str_append(line, count == 0 ? "empty" : "");
        return;
    }
    double least = INFINITY, most = -INFINITY, mean = 0;
    for (int64_t i = 0; i < count; i++) {
        double v = tensor_get_float64(t, i);
        n_nan += isnan(v);
        n_infinite += isinf(v) != 0;
        if (!isfinite(v))
            continue;
        least = v < least ? v : least;
        most = v > most ? v : most;
        mean += (v - mean) / (double)++n;
    }
    if (n)
        str_printf(line, "min %g max %g mean %.3g", least, most, mean);
    if (n_nan)
        str_printf(line, "%snan %lld", n ? " " : "", (long long)n_nan);
    if (n_infinite)
        str_printf(line, "%sinf %lld", n || n_nan ? " " : "", (long long)n_infinite);
}

void show_elements(struct str *line, const struct tensor *t, int64_t limit)
{
    int64_t count = tensor_count(t);
    if (count == 0)
        str_append(line, "empty");
    for (int64_t i = 0; i < count; i++) {
        if (i)
            str_append_char(line, ' ');
        if (limit >= 0 && i == limit) {
            str_append(line, "...");
            return;
        }
        if (dtype_is_floating(t->type))
            str_printf(line, "%g", tensor_get_float64(t, i));
        else
            tensor_print_element(line, t, i);
    }
}

/* ---- JSON ---- */

void show_json_text(struct str *line, const char *text, size_t n)
{
    str_append_char(line, '"');
    for (size_t i = 0, length; i < n; i += length ? length : 1) {
        unsigned char c = (unsigned char)text[i];
        length = str_utf8(text + i, n - i);
        if (c == '"' || c == '\\')
            str_printf(line, "\\%c", c);
        else if (c < ' ' || c == 0x7f || !length)
            str_printf(line, "\\u%04x", c);
        else
            str_append_bytes(line, text + i, length);
    }
    str_append_char(line, '"');
}

void show_json_float(struct str *line, double value)
{
    if (isfinite(value))
        str_append_float64(line, value);
    else
        str_append(line, isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
}

void show_json_tensor(struct str *line, const struct tensor *t)
{
    const struct shape *shape = &t->shape;
    int64_t count = tensor_count(t), index[SHAPE_RANK_MAX] = {0};
    if (count == 0) { /* print brackets down to the first empty dimension */
        int depth = 0;
        while (depth < shape->rank && shape->dims[depth] == 1)
            depth++;
        for (int i = 0; i <= depth; i++)
            str_append_char(line, '[');
        for (int i = 0; i <= depth; i++)
            str_append_char(line, ']');
        return;
    }
    for (int i = 0; i < shape->rank; i++)
        str_append_char(line, '[');
    for (int64_t i = 0; i < count; i++) {
        const char *text;
        size_t length;
        if (t->type == STRING) {
            tensor_string(t, i, &text, &length);
            show_json_text(line, text, length);
        } else if (t->type == COMPLEX64) {
            const float *parts = (const float *)t->data + 2 * i;
            struct shape pair = shape_vector(2);
            struct tensor both = tensor_borrow(FLOAT32, &pair, (void *)parts);
            show_json_tensor(line, &both);
        } else {
            double v = dtype_is_floating(t->type) ? tensor_get_float64(t, i) : 0;
            if (isfinite(v))
                tensor_print_element(line, t, i);
            else
                show_json_float(line, v);
        }
        int axis = shape->rank - 1;
        for (; axis >= 0 && ++index[axis] == shape->dims[axis]; axis--)
            index[axis] = 0;
        for (int k = shape->rank - 1; k > axis; k--)
            str_append_char(line, ']');
        if (axis < 0)
            return;
        str_append_char(line, ',');
        for (int k = shape->rank - 1; k > axis; k--)
            str_append_char(line, '[');
    }
}

void show_json_value(struct str *line, const msgpack_object *value)
{
    switch (value->type) {
    case MSGPACK_OBJECT_BOOLEAN:
        str_append(line, value->via.boolean ? "true" : "false");
        break;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        str_printf(line, "%" PRIu64, value->via.u64);
        break;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        str_printf(line, "%" PRId64, value->via.i64);
        break;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        show_json_float(line, value->via.f64);
        break;
    case MSGPACK_OBJECT_STR:
        show_json_text(line, value->via.str.ptr, value->via.str.size);
        break;
    case MSGPACK_OBJECT_ARRAY:
        str_append_char(line, '[');
        for (uint32_t i = 0; i < value->via.array.size; i++) {
            if (i)
                str_append_char(line, ',');
            show_json_value(line, &value->via.array.ptr[i]);
        }
        str_append_char(line, ']');
        break;
    case MSGPACK_OBJECT_MAP: {
        bool first = true;
        str_append_char(line, '{');
        for (uint32_t i = 0; i < value->via.map.size; i++) {
            const msgpack_object *key = &value->via.map.ptr[i].key;
            if (key->type != MSGPACK_OBJECT_STR)
                continue;
            if (!first)
                str_append_char(line, ',');
            first = false;
            show_json_text(line, key->via.str.ptr, key->via.str.size);
            str_append_char(line, ':');
            show_json_value(line, &value->via.map.ptr[i].val);
        }
        str_append_char(line, '}');
        break;
    }
    default:
        str_append(line, "null");
        break;
    }
}
