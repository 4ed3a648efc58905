/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "tensor/literal.h"
#include "tensor/tensor.h"

static void print_integer(struct str *out, uint64_t magnitude, bool negative)
{
    char digits[24], *p = digits + sizeof digits;
    do
        *--p = (char)('0' + magnitude % 10);
    while (magnitude /= 10);
    if (negative)
        *--p = '-';
    str_append_bytes(out, p, (size_t)(digits + sizeof digits - p));
}

/* Most elements of many constants are small whole numbers, which print faster as integers. */
static bool print_whole(struct str *out, double value)
{
    if (!(fabs(value) < 100000) || value != trunc(value) || (value == 0 && signbit(value)))
        return false;
    print_integer(out, (uint64_t)fabs(value), value < 0);
    return true;
}

static void print_float(struct str *out, float value)
{
    if (!print_whole(out, value))
        str_append_float32(out, value);
}

void literal_print_string(struct str *out, const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    str_append_char(out, '"');
    for (size_t i = 0, plain; i < n; i += plain) {
        plain = 0;
        while (i + plain < n && s[i + plain] >= ' ' && s[i + plain] < 0x7f && s[i + plain] != '"' &&
               s[i + plain] != '\\')
            plain++;
        if (!plain && s[i] >= 0x80)
            plain = str_utf8(text + i, n - i);
        if (plain) {
            str_append_bytes(out, s + i, plain);
            continue;
        }
        const char *found = s[i] ? strchr(literal_escaped, text[i]) : NULL;
        if (found)
            str_printf(out, "\\%c", literal_letters[found - literal_escaped]);
        else
            str_printf(out, "\\x%02x", s[i]);
        plain = 1;
    }
    str_append_char(out, '"');
}

void tensor_print_element(struct str *out, const struct tensor *t, int64_t index)
{
    const char *text;
    size_t n;
    int64_t value;
    switch (t->type) {
    case FLOAT32:
    case FLOAT16:
    case BFLOAT16:
        print_float(out, (float)tensor_get_float64(t, index));
        break;
    case FLOAT64:
        if (!print_whole(out, ((const double *)t->data)[index]))
            str_append_float64(out, ((const double *)t->data)[index]);
        break;
    case COMPLEX64: {
        const float *parts = (const float *)t->data + 2 * index;
        print_float(out, parts[0]);
        if (isnan(parts[1]) || !signbit(parts[1]))
            str_append_char(out, '+');
        print_float(out, parts[1]);
        str_append_char(out, 'j');
        break;
    }
    case BOOL:
        str_append(out, ((const uint8_t *)t->data)[index] ? "true" : "false");
        break;
    case STRING:
        tensor_string(t, index, &text, &n);
        literal_print_string(out, text, n);
        break;
    case UINT64:
    case RESOURCE:
        print_integer(out, ((const uint64_t *)t->data)[index], false);
        break;
    default:
        value = tensor_get_int64(t, index);
        print_integer(out, value < 0 ? -(uint64_t)value : (uint64_t)value, value < 0);
        break;
    }
}

void tensor_print_plain(struct str *out, const struct tensor *t, int64_t index)
{
    const char *text;
    size_t n;
    if (t->type != STRING) {
        tensor_print_element(out, t, index);
    } else {
        tensor_string(t, index, &text, &n);
        str_append_bytes(out, text, n);
    }
}

struct printer {
    struct str *out;
    const struct tensor *t;
    int64_t index; /* of the next element */
    int64_t left;  /* elements and empty lists that may still be printed; < 0: all */
};

static void print_level(struct printer *p, int axis)
{
    const struct shape *shape = &p->t->shape;
    if (axis == shape->rank || !shape->dims[axis]) {
        if (p->left > 0)
            p->left--;
        if (axis == shape->rank)
            tensor_print_element(p->out, p->t, p->index++);
        else
            str_append(p->out, "[]");
        return;
    }
    str_append_char(p->out, '[');
    for (int64_t i = 0; i < shape->dims[axis]; i++) {
        if (i)
            str_append_char(p->out, ',');
        if (!p->left) {
            str_append(p->out, "...");
            break;
        }
        print_level(p, axis + 1);
    }
    str_append_char(p->out, ']');
}

#define EMPTY_LISTS_MAX 4096

void tensor_print(struct str *out, const struct tensor *t, int64_t limit)
{
    bool empty = tensor_count(t) == 0; /* [2^40,0] has that many lists, all empty */
    if (empty && (limit < 0 || limit > EMPTY_LISTS_MAX))
        limit = EMPTY_LISTS_MAX;
    struct printer p = {.out = out, .t = t, .left = limit < 0 ? -1 : limit};
    print_level(&p, 0);
}
