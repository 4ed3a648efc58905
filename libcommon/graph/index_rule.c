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
    return memchr(operand->axes, axis, (size_t)operand->n);
}

enum op_rows rule_rows(const struct op *op)
{
    const struct index_rule *rule = op->rule;
    bool changes = op->n_outputs && op->outputs[0].is_ref;
    if (!rule)
        return ROWS_ANY;
    const struct rule_operand *out = &rule->operands[0], *in = &rule->operands[rule->n_results];
    if (rule->sign == RULE_EACH)
        return changes ? ROWS_UPDATE : ROWS_ALIKE;
    if (out->axes[0] == RULE_NUMBER)
        return changes ? ROWS_SCATTER : ROWS_SUM;
    if (in->axes[0] == RULE_NUMBER)
        return ROWS_LOOKUP;
    if (rule->sign == RULE_ALL && op->inputs[in->argument].is_ref)
        return ROWS_ASK;
    for (int i = rule->n_results; i < rule->n; i++)
        if (rule->sign != RULE_IS || !out->n || has_axis(&rule->operands[i], out->axes[0]))
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
    return input == RULE_RESULT ? &rule->node->outputs[0].shape
                                : &graph_output(rule->graph, rule->node->inputs[input])->shape;
}

static void move_last(int8_t *axes, int n, int to)
{
    int8_t last = axes[n - 1];
    memmove(axes + to + 1, axes + to, (size_t)(n - 1 - to));
    axes[to] = last;
}

/* Sets the axes of a tensor's dimensions, before anything broadcasts. */
static bool find_axes(const struct bound_rule *rule, int input, int8_t axes[SHAPE_RANK_MAX])
{
    static const struct rule_operand each = {.n = 1, .axes = {RULE_RUN}};
    const struct node *node = rule->node;
    const struct rule_operand *operand =
        rule->sign == RULE_EACH ? &each : rule_operand(node->op, input);
    int rank = shape_of_tensor(rule, input)->rank, n = 0;
    memset(axes, -1, SHAPE_RANK_MAX);
    for (int k = 0; operand && k < operand->n; k++) {
        bool is_run = operand->axes[k] == RULE_RUN;
        int length = is_run ? rank - operand->n + 1 : 1;
        if (length < 0 || n + length > SHAPE_RANK_MAX)
            return false;
        while (length-- > 0)
            axes[n++] = is_run ? (int8_t)length : operand->axes[k];
    }
    if (operand && operand->swapped && node_bool(node, operand->swapped))
        move_last(axes, n, n - 2);
    if (operand && operand->has_format && !strcmp(node_string(node, "data_format"), "NCHW"))
        move_last(axes, n, 1);
    return operand;
}

bool rule_bind(const struct graph *graph, const struct node *node, struct bound_rule *rule)
{
    const struct rule_operand *out = rule_operand(node->op, RULE_RESULT);
    if (!node->op->rule)
        return false;
    *rule = (struct bound_rule){.graph = graph, .node = node, .sign = node->op->rule->sign};
    memset(rule->result, -1, sizeof rule->result);
    if (!out || !out->listing)
        return find_axes(rule, RULE_RESULT, rule->result);
    /* The axes that a constant leaves of those of input 0; with keep_dims others have length 1. */
    int rank = shape_of_tensor(rule, 0)->rank, n = 0;
    bool keeps = node_bool(node, "keep_dims");
    unsigned axes;
    if (rank < 0 || !graph_constant_axes(graph, node->inputs[out->listing], rank, &axes))
        return false;
    for (int d = 0; d < rank; d++) {
        bool is_gone = axes & 1U << d;
        if (!is_gone || keeps)
            rule->result[n++] = is_gone ? -1 : (int8_t)(rank - 1 - d);
    }
    return true;
}

int rule_axis(const struct bound_rule *rule, int input, int dimension)
{
    const struct shape *in = shape_of_tensor(rule, input);
    int8_t axes[SHAPE_RANK_MAX];
    if (!find_axes(rule, input, axes))
        return -1;
    int axis = axes[dimension], at = rule_dimension(rule, RULE_RESULT, axis);
    if (rule->sign != RULE_EACH || at < 0)
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

int64_t rule_extent(const struct bound_rule *rule, int axis)
{
    for (int i = RULE_RESULT; i < rule->node->n_inputs; i++) {
        const struct shape *shape = shape_of_tensor(rule, i);
        int d = rule_dimension(rule, i, axis);
        if (d >= 0 && d < shape->rank && shape->dims[d] != SHAPE_UNKNOWN)
            return shape->dims[d];
    }
    return SHAPE_UNKNOWN;
}

static const struct shape *shape_with(const struct bound_rule *rule, int axis)
{
    const struct index_rule *text = rule->node->op->rule;
    for (int i = 0; i < text->n; i++)
        if (has_axis(&text->operands[i], axis))
            return shape_of_tensor(rule, i ? text->operands[i].argument : RULE_RESULT);
    return NULL;
}

bool rule_window(const struct bound_rule *rule, struct op_window *window)
{
    const struct node *node = rule->node;
    return node->op->def->window &&
           node->op->def->window(node, shape_with(rule, 'Y'), shape_with(rule, -'i'), window);
}
