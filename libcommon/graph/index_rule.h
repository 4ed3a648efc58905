/* SPDX-License-Identifier: Apache-2.0
 *
 * How the axes of an op's results come from those of its inputs, as a text. Passes that cut tensors
 * learn from it what can be computed of parts. A matrix product is
 *
 *     product[i,o] += a[i,k]~transpose_a b[k,o]~transpose_b
 *
 * A letter is an axis. One that no result has is summed over, or combined as the sign says:
 * += mean= *= max= min= all= any=; with = there is none. Left of the sign are results, right of it
 * inputs, by the names that the op gives them; what is not mentioned is needed whole.
 *
 *     k...      a run of axes, aligned at its end; ... is one without a name
 *     c:        an axis that is needed whole
 *     y^        what the windows y look at; of a result, what they give back
 *     <ids>     an axis in which input `ids` says the place
 *     -axes     the input's run of axes, without those that the constant input `axes` lists
 *     x#        of this input only its value counts, which is a shape
 *     ~attr     the last two axes are swapped if the attribute is true
 *     @         the last axis is axis 1 if attribute data_format is "NCHW"
 *
 * "each": all inputs and the result are [...], and axes of length 1 broadcast; if the result is a
 * variable, so are the inputs that it is made of, and scalars apply to all elements.
 */
#ifndef TF_GRAPH_INDEX_RULE_H
#define TF_GRAPH_INDEX_RULE_H

#include "graph/graph.h"

enum rule_sign { RULE_EACH, RULE_IS, RULE_SUM, RULE_MEAN, RULE_OTHER, RULE_ALL };
enum { RULE_RUN = -2, RULE_NUMBER = -3 };

#define RULE_AXES_MAX 6
#define RULE_OPERANDS_MAX 5

struct rule_operand {
    int argument; /* of the op's outputs or inputs */
    int listing;  /* the input of -axes; 0: none */
    bool is_shape, has_format;
    const char *swapped; /* an attribute, or NULL */
    int n;
    int8_t axes[RULE_AXES_MAX]; /* a letter, of y^ Y, of c: -c; or as above */
};

struct index_rule {
    enum rule_sign sign;
    int n_results, n; /* operands: first the results */
    struct rule_operand operands[RULE_OPERANDS_MAX];
};

/* What follows of a rule alone: how the op treats rows; whether it multiplies two matrices. */
enum op_rows rule_rows(const struct op *op);
bool rule_is_product(const struct op *op);

/* The operand that is an input, or RULE_RESULT, output 0; NULL: there is none. */
#define RULE_RESULT (-1)
const struct rule_operand *rule_operand(const struct op *op, int input);

/* A rule for the shapes of a node. An axis is a letter or, below SHAPE_RANK_MAX, a place in a run,
 * counted from its end. */
struct bound_rule {
    const struct graph *graph;
    const struct node *node;
    enum rule_sign sign;
    int8_t result[SHAPE_RANK_MAX]; /* by dimension of output 0: its axis; -1: none */
};

/* False: there is no rule, or ranks or the axes that it lists are not known. */
bool rule_bind(const struct graph *graph, const struct node *node, struct bound_rule *rule);

/* The axis that a dimension of an input is; -1: none, or it broadcasts, or may. */
int rule_axis(const struct bound_rule *rule, int input, int dimension);

/* The dimension that an axis is of an input or of RULE_RESULT; -1: none. */
int rule_dimension(const struct bound_rule *rule, int input, int axis);

/* The size of an axis of something; SHAPE_UNKNOWN: not known. */
int64_t rule_extent(const struct bound_rule *rule, int axis);

/* The windows of an op that has some, or is the gradient of one that has. False: it is not, or
 * nothing is known. */
bool rule_window(const struct bound_rule *rule, struct op_window *window);

/* Whether elements along an axis are summed, or combined as the sign says. */
bool rule_combines(const struct bound_rule *rule, int axis);

/* The first dimension of an input of which that is so; -1: there is none. */
int rule_summed(const struct bound_rule *rule, int input);

#endif
