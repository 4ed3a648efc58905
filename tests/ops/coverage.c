/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ops/coverage.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/memory.h"
#include "graph/infer.h"
#include "ops/ops.h"
#include "tests/lib/kernel_types.h"
#include "tests/ops/case.h"

struct op_coverage {
    _Atomic dtype_set types; /* values of the op's first type attribute that were seen */
    atomic_int values, errors, gradients, unknown;
};

struct coverage {
    struct op_coverage *ops; /* by the registry's order */
};

static size_t coverage_bytes(void)
{
    return registry_count(ops_registry()) * sizeof(struct op_coverage);
}

struct coverage *coverage_new(void)
{
    struct coverage *coverage = mem_alloc(sizeof *coverage);
    coverage->ops =
        mmap(NULL, coverage_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (coverage->ops == MAP_FAILED)
        abort();
    return coverage;
}

void coverage_free(struct coverage *coverage)
{
    munmap(coverage->ops, coverage_bytes());
    mem_free(coverage);
}

static struct op_coverage *find(struct coverage *coverage, const char *name)
{
    const struct registry *registry = ops_registry();
    for (size_t i = 0; i < registry_count(registry); i++)
        if (!strcmp(registry_at(registry, i)->def->name, name))
            return &coverage->ops[i];
    return NULL;
}

static void count(struct op_coverage *op, enum coverage_kind kind)
{
    op->values += kind == COVERAGE_VALUE;
    op->errors += kind == COVERAGE_ERROR;
    op->gradients += kind == COVERAGE_GRADIENT;
    op->unknown += kind == COVERAGE_UNKNOWN;
}

void coverage_note(struct coverage *coverage, const struct node *node, enum coverage_kind kind)
{
    struct op_coverage *op = find(coverage, node->op->def->name);
    for (int i = 0; kind == COVERAGE_VALUE && i < node->op->n_attrs; i++) {
        if (node->op->attrs[i].kind == ATTR_TYPE) {
            op->types |= DTYPE_BIT(node_type(node, node->op->attrs[i].name));
            break;
        }
    }
    count(op, kind);
}

void coverage_note_name(struct coverage *coverage, const char *ops, enum coverage_kind kind)
{
    const struct registry *registry = ops_registry();
    for (size_t i = 0; i < registry_count(registry); i++)
        if (case_lists(ops, registry_at(registry, i)->def->name))
            count(&coverage->ops[i], kind);
}

/* Ops of one input and no attributes but types take whatever they are given. */
static bool can_fail(const struct op *op)
{
    if (op->def->shape == infer_unchanged && op->n_inputs <= 1)
        return false;
    for (int i = 0; i < op->n_attrs; i++)
        if (!op->attrs[i].inferred && op->attrs[i].kind != ATTR_TYPE)
            return true;
    return op->n_inputs > 1;
}

/* Rather than what is sent, popped or read from a file. */
static bool takes_data(const struct op *op)
{
    return op->n_inputs && !(op->def->flags & OP_STATEFUL);
}

static const struct op_attr *first_type(const struct op *op)
{
    for (int i = 0; i < op->n_attrs; i++)
        if (op->attrs[i].kind == ATTR_TYPE)
            return &op->attrs[i];
    return NULL;
}

void coverage_missing(const struct coverage *coverage, size_t index, const char *device,
                      struct str *missing)
{
    const struct op *op = registry_at(ops_registry(), index);
    const struct op_coverage *seen = &coverage->ops[index];
    const struct op_attr *attr = first_type(op);
    dtype_set types = attr ? computed_types(ops_kernels(), op, attr, device) : 0;
    if (!op->def->doc || !*op->def->doc)
        str_append(missing, " doc");
    if (!seen->values)
        str_append(missing, " value");
    for (int type = 1; type < 32 && seen->values; type++)
        if (types & ~seen->types & DTYPE_BIT(type))
            str_printf(missing, " value:%s", dtype_name((enum dtype)type));
    if (can_fail(op) && !seen->errors)
        str_append(missing, " error");
    if (op->def->gradient && !seen->gradients)
        str_append(missing, " gradient");
    if (op->def->flags & OP_SHAPED_BY_DATA && takes_data(op) && !seen->unknown)
        str_append(missing, " shape:data");
}
