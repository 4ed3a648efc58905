/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/index_rule.h"

#include <ctype.h>
#include <string.h>

#include "graph/infer.h"

const struct rule_operand *rule_operand(const struct op *op, int input)
{
    const struct index_rule *rule = op->rule;
    bool is_result = input == RULE_RESULT;
    for (int i = 0; rule && i < rule->n; i++)
        if ((i < rule->n_results) == is_result &&
            rule->operands[i].argument == (is_result ? 0 : input))
            return &rule->operands[i];
    return NULL;
}

/* ---- what follows of a rule alone ---- */

static bool has_axis(const struct rule_operand *operand, int axis)
{
    for (int k = 0; k < operand->n; k++)
        if (operand->indices[k].axis == axis)
            return true;
    return false;
}

static bool is_by_number(const struct rule_operand *operand)
{
    return operand->n && operand->indices[0].kind == INDEX_NUMBER;
}

enum op_rows rule_rows(const struct op *op)
{
    const struct index_rule *rule = op->rule;
    if (!rule)
        return ROWS_ANY;
    if (rule->sign == RULE_EACH)
        return op->outputs[0].is_ref ? ROWS_UPDATE : ROWS_ALIKE;
    const struct rule_operand *out = &rule->operands[0], *in = &rule->operands[rule->n_results];
    if (is_by_number(out))
        return op->outputs[0].is_ref ? ROWS_SCATTER : ROWS_SUM;
    if (is_by_number(in))
        return ROWS_LOOKUP;
    if (op->inputs[in->argument].is_ref)
        return rule->sign == RULE_ALL ? ROWS_ASK : ROWS_ANY;
    for (int i = rule->n_results; i < rule->n; i++)
        if (!out->n || has_axis(&rule->operands[i], out->indices[0].axis))
            return ROWS_ANY;
    return in->is_shape ? ROWS_MADE : ROWS_DISTINCT; /* an axis that no input has */
}

bool rule_is_product(const struct op *op)
{
    return op->rule && op->rule->sign == RULE_SUM && op->rule->n == 3 &&
           op->rule->operands[0].n == 2;
}

/* ---- of the shapes of a node ---- */

static const struct shape *shape_of_tensor(const struct bound_rule *rule, int input)
{
    if (input == RULE_RESULT)
        return &rule->node->outputs[0].shape;
    struct edge edge = rule->node->inputs[input];
    return &graph_node(rule->graph, edge.node)->outputs[edge.slot].shape;
}

static void swap(int8_t *a, int8_t *b)
{
    int8_t kept = *a;
    *a = *b;
    *b = kept;
}

/* Sets the axes of a tensor's dimensions, before anything broadcasts. */
static bool find_axes(const struct bound_rule *rule, int input, int8_t axes[SHAPE_RANK_MAX])
{
    static const struct rule_operand each = {.n = 1, .indices = {{.kind = INDEX_RUN}}};
    const struct node *node = rule->node;
    const struct rule_operand *operand =
        rule->sign == RULE_EACH ? &each : rule_operand(node->op, input);
    int rank = shape_of_tensor(rule, input)->rank, n = 0, runs = 0;
    memset(axes, -1, SHAPE_RANK_MAX);
    for (int k = 0; operand && k < operand->n; k++)
        runs += operand->indices[k].kind == INDEX_RUN;
    if (!operand || runs > 1 || (runs && rank < operand->n - 1))
        return false;
    for (int k = 0; k < operand->n; k++)
        if (operand->indices[k].kind == INDEX_RUN)
            for (int place = rank - operand->n + 1; place-- > 0;)
                axes[n++] = (int8_t)place;
        else
            axes[n++] = (int8_t)operand->indices[k].axis;
    if (operand->swapped && node_bool(node, operand->swapped))
        swap(&axes[n - 2], &axes[n - 1]);
    bool is_second = operand->format && !strcmp(node_string(node, operand->format), "NCHW");
    for (int d = n - 1; is_second && d > 1; d--)
        swap(&axes[d - 1], &axes[d]);
    return true;
}

/* The axes of output 0 that a constant input leaves of those of input 0. */
static bool find_remaining(struct bound_rule *rule, struct edge listing)
{
    const struct shape *in = shape_of_tensor(rule, 0);
    bool keeps = node_bool(rule->node, "keep_dims");
    unsigned axes;
    if (in->rank < 0 || !graph_constant_axes(rule->graph, listing, in->rank, &axes))
        return false;
    for (int d = 0, n = 0; d < in->rank; d++) {
        bool is_gone = axes & 1U << d;
        if (!is_gone || keeps)
            rule->result[n++] = is_gone ? -1 : (int8_t)(in->rank - 1 - d);
    }
    return true;
}

bool rule_bind(const struct graph *graph, const struct node *node, struct bound_rule *rule)
{
    const struct rule_operand *out = rule_operand(node->op, RULE_RESULT);
    if (!node->op->rule)
        return false;
    *rule = (struct bound_rule){.graph = graph, .node = node, .sign = node->op->rule->sign};
    memset(rule->result, -1, sizeof rule->result);
    return out && out->n && out->indices[0].kind == INDEX_LISTED
               ? find_remaining(rule, node->inputs[out->indices[0].input])
               : find_axes(rule, RULE_RESULT, rule->result);
}

int rule_axis(const struct bound_rule *rule, int input, int dimension)
{
    const struct shape *in = shape_of_tensor(rule, input);
    int8_t axes[SHAPE_RANK_MAX];
    if (!find_axes(rule, input, axes))
        return -1;
    int axis = axes[dimension], at = rule_dimension(rule, RULE_RESULT, axis);
    if (axis >= SHAPE_RANK_MAX || at < 0)
        return axis;
    int64_t size = in->dims[dimension];
    return size != SHAPE_UNKNOWN && size == rule->node->outputs[0].shape.dims[at] ? axis : -1;
}

int rule_dimension(const struct bound_rule *rule, int input, int axis)
{
    for (int d = 0; d < SHAPE_RANK_MAX && axis >= 0; d++)
        if ((input == RULE_RESULT ? rule->result[d] : rule_axis(rule, input, d)) == axis)
            return d;
    return -1;
}

bool rule_combines(const struct bound_rule *rule, int axis)
{
    return rule->sign >= RULE_SUM && axis >= 0 && !isupper(axis) &&
           rule_dimension(rule, RULE_RESULT, axis) < 0;
}

int rule_summed(const struct bound_rule *rule, int input)
{
    for (int d = 0; d < SHAPE_RANK_MAX; d++)
        if (rule_combines(rule, rule_axis(rule, input, d)))
            return d;
    return -1;
}

static const struct shape *shape_with(const struct bound_rule *rule, int axis)
{
    for (int i = RULE_RESULT; i < rule->node->n_inputs; i++) {
        const struct rule_operand *operand = rule_operand(rule->node->op, i);
        if (operand && has_axis(operand, axis))
            return shape_of_tensor(rule, i);
    }
    return NULL;
}

bool rule_window(const struct bound_rule *rule, struct op_window *window)
{
    const struct node *node = rule->node;
    return node->op->def->window &&
           node->op->def->window(node, shape_with(rule, 'Y'), shape_with(rule, -1), window);
}
