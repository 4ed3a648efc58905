/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>

#include "show/show.h"

void show_json_float(struct str *line, double value)
{
    if (isfinite(value))
        str_append_float64(line, value);
    else
        str_append(line, isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
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
