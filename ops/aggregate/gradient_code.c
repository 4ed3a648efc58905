/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/aggregate/gradient_code.h"

#include <string.h>

static const char *const names[] = {"one_bit", "uniform", "threshold", "top"};

static int64_t row_bytes(const struct gradient_code *code)
{
    int64_t bits = (code->group * code->bits + 7) / 8;
    switch (code->kind) {
    case CODE_TOP:
        return code->keep * CODE_ENTRY;
    case CODE_THRESHOLD:
        return bits;
    default:
        return CODE_HEAD + bits;
    }
}

const char *gradient_code_read(struct gradient_code *code, const struct node *node)
{
    *code = (struct gradient_code){.bits = (int)node_int(node, "bits"),
                                   .group = node_int(node, "group"),
                                   .keep = node_int(node, "keep"),
                                   .threshold = (float)node_float(node, "threshold")};
    while (strcmp(names[code->kind], node_string(node, "code")) != 0)
        code->kind++;
    if (code->kind == CODE_ONE_BIT)
        code->bits = 1;
    if (code->group > UINT32_MAX)
        return "a group has less than 2^32 elements";
    if (code->kind == CODE_UNIFORM && (code->bits < 2 || code->bits > 8))
        return "code uniform has 2 to 8 bits";
    if (code->kind == CODE_THRESHOLD && (code->bits < 1 || code->bits > 2))
        return "code threshold has 1 or 2 bits";
    if (code->kind == CODE_THRESHOLD && !(code->threshold > 0 || code->bits == 1))
        return "a threshold is more than 0";
    if (code->kind == CODE_TOP && (code->keep < 1 || code->keep > code->group))
        return "code top keeps 1 or more elements, at most a group";
    code->row = row_bytes(code);
    return NULL;
}
