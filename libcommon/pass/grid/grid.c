/* SPDX-License-Identifier: Apache-2.0
 *
 * What is cut, and how: cutting starts at ops with windows, and what goes element by element goes
 * on with it; a variable is cut if what is cut takes its part of it. Then the nodes of the source,
 * one after the other: those that are cut are there once for each cell.
 */
#include "pass/grid/grid.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "graph/access_nodes.h"
#include "graph/device_name.h"
#include "graph/index_rule.h"
#include "graph/infer.h"
#include "pass/cut.h"

enum grid_role {
    GRID_ONCE,
    GRID_TILES, /* of each cell a part, or a term of a sum: by its rule */
    GRID_SHAPE, /* is the shape of what is cut */
    GRID_VARIABLE,
};

/* A part of an output of the source that is there already, for a cell. */
struct grid_part {
    struct edge of, edge;
    int cell;
    struct partition cut;
    struct area area;
    struct grid_part *next; /* of the same node */
};

struct grid {
    const struct grid_options *options;
    struct rewrite r;
    int n;
    const char **devices;     /* by cell */
    const char *prefix;       /* of the names of what is new: prefix_CELL/NAME */
    char *role;               /* by node: enum grid_role */
    char *stays_whole;        /* by node: a variable that some node needs whole */
    bool is_found_anew;       /* another one has to be whole */
    struct partition *cut;    /* by node: of its output, in the parts... */
    struct edge **parts;      /* ... that are here, by cell */
    const char ***names;      /* by variable that is cut, and cell */
    struct grid_part **known; /* by node: regions and slices that were made */
    struct build b;
};

/* The cut of a value of the source; is_cut is false if it is whole. */
static struct partition grid_cut_of(const struct grid *g, struct edge edge)
{
    return edge.slot == 0 && edge_exists(edge) ? g->cut[edge.node] : (struct partition){0};
}

/* How a node with role GRID_TILES is cut. */
struct grid_rule {
    struct bound_rule rule;
    int axes[2];                 /* of the rule: those that are cut */
    struct partition cut, image; /* along these, and, of an op with windows, of what they look at */
    struct op_window window;
};

/* The region that a cell's windows look at, and how much of them is before and after the image. */
struct grid_region {
    struct area area;
    int64_t before[2], after[2];
};

/* ---- what a tile of the windows' outputs needs of the image ---- */

static struct grid_region grid_region(const struct grid_rule *r, int cell)
{
    const struct op_window_axis *axes[] = {&r->window.y, &r->window.x};
    struct area out = cut_area(&r->cut, cell);
    struct grid_region region;
    for (int d = 0; d < 2; d++) {
        int64_t from = out.from[d] * axes[d]->stride - axes[d]->before;
        int64_t to = (out.to[d] - 1) * axes[d]->stride - axes[d]->before + axes[d]->size;
        region.before[d] = from < 0 ? -from : 0;
        region.after[d] = to > r->image.size[d] ? to - r->image.size[d] : 0;
        region.area.from[d] = from + region.before[d];
        region.area.to[d] = to - region.after[d];
    }
    return region;
}

/* How two axes of the rule are cut; false: their sizes are unknown, or some tile would be empty. */
static bool cut_along(const struct grid *g, const struct grid_rule *r, int y, int x,
                      struct partition *cut)
{
    int rows = g->options->rows, columns = g->options->columns;
    *cut = (struct partition){true,
                              true,
                              {r->window.y.axis, r->window.x.axis},
                              {rows, columns},
                              {rule_extent(&r->rule, y), rule_extent(&r->rule, x)}};
    return cut->size[0] >= rows && cut->size[1] >= columns;
}

static bool find_windows(const struct grid *g, struct grid_rule *r)
{
    r->axes[0] = 'y';
    r->axes[1] = 'x';
    if (!rule_window(&r->rule, &r->window) || !cut_along(g, r, 'y', 'x', &r->cut) ||
        !cut_along(g, r, 'Y', 'X', &r->image))
        return false;
    /* Each cell's windows must see some of the image, and each tile of it must be seen. */
    for (int k = 0; k < g->n; k++) {
        struct area tile = cut_area(&r->image, k);
        bool seen = false;
        if (area_is_empty(grid_region(r, k).area))
            return false;
        for (int j = 0; j < g->n; j++)
            seen |= !area_is_empty(area_meet(grid_region(r, j).area, tile));
        if (!seen)
            return false;
    }
    return true;
}

/* ---- nodes with a rule ---- */

/* Windows are cut wherever they are, others as the first input that is cut. */
static bool grid_rule(const struct grid *g, const struct node *node, struct grid_rule *r)
{
    memset(r, 0, sizeof *r);
    if (!rule_bind(g->r.from, node, &r->rule))
        return false;
    if (node->op->def->window)
        return find_windows(g, r);
    for (int i = 0; i < node->n_inputs; i++) {
        r->cut = grid_cut_of(g, node->inputs[i]);
        for (int d = 0; d < 2 && r->cut.is_cut; d++)
            r->axes[d] = rule_axis(&r->rule, i, r->cut.axis[d]);
        if (r->cut.is_cut && r->axes[0] >= 0 && r->axes[1] >= 0)
            return true;
    }
    return false;
}

/* How an input, or RULE_RESULT, is cut then, and whether it is what windows look at. */
static struct partition grid_cut_for(const struct grid_rule *r, int input, bool *is_image)
{
    *is_image = rule_dimension(&r->rule, input, 'Y') >= 0;
    struct partition cut = *is_image ? r->image : r->cut;
    for (int d = 0; d < 2; d++)
        cut.axis[d] = rule_dimension(&r->rule, input, *is_image ? toupper(r->axes[d]) : r->axes[d]);
    cut.is_cut = cut.axis[0] >= 0 || cut.axis[1] >= 0;
    return cut;
}

/* ---- variables ---- */

/* Marks the variable that the edge reads to be cut so; false if it is marked, or cannot be cut. */
static bool want(struct grid *g, struct edge edge, const struct partition *cut)
{
    const struct node *node = graph_node(g->r.from, edge.node);
    while (node_has(node, OP_PASSES) && node->n_inputs == 1)
        node = graph_node(g->r.from, node->inputs[0].node);
    if (g->cut[node->id].is_cut || !cut_is_possible(node) || g->stays_whole[node->id] ||
        *node_string(node, "shared_name"))
        return false;
    for (int d = 0; d < 2; d++)
        if (cut->axis[d] < 0 || node->outputs[0].shape.dims[cut->axis[d]] != cut->size[d])
            return false;
    g->cut[node->id] = *cut;
    g->role[node->id] = GRID_VARIABLE;
    return true;
}

/* ---- roles ---- */

/* Returns whether the sizes of all inputs are known where they would have to be cut. */
static bool has_known_sizes(const struct grid *g, const struct grid_rule *r,
                            const struct partition *cut)
{
    const struct node *node = r->rule.node;
    for (int i = 0; i < node->n_inputs && r->rule.sign == RULE_EACH; i++) {
        const struct shape *shape = &graph_output(g->r.from, node->inputs[i])->shape;
        int shift = node->outputs[0].shape.rank - shape->rank;
        for (int d = 0; d < 2; d++)
            if (shape->rank < 0 || (cut->axis[d] >= shift && shape->dims[cut->axis[d] - shift] < 0))
                return false;
    }
    return true;
}

/* Both axes or none: of one, what is left would be in stripes. All variables that a node changes
 * are cut alike. */
static bool find_tiles(struct grid *g, const struct node *node, struct partition *cut,
                       bool *changed)
{
    struct grid_rule r;
    enum op_rows rows = node_rows(node);
    bool is_image, takes_variable = rows == ROWS_UPDATE || rows == ROWS_ASK;
    if (node->n_outputs != 1 || !grid_rule(g, node, &r) ||
        (!takes_variable && (node_has(node, OP_STATEFUL) || node->outputs[0].is_ref)))
        return false;
    *cut = grid_cut_for(&r, RULE_RESULT, &is_image);
    if (!cut->is_cut && rule_combines(&r.rule, r.axes[0]) && rule_combines(&r.rule, r.axes[1]))
        return r.rule.sign == RULE_SUM || rows == ROWS_ASK ||
               (r.rule.sign == RULE_MEAN && dtype_is_floating(node->outputs[0].type));
    if (cut->axis[0] < 0 || cut->axis[1] < 0 || !has_known_sizes(g, &r, cut))
        return false;
    for (int i = 0; i < node->n_inputs; i++) {
        struct partition in = grid_cut_for(&r, i, &is_image);
        *changed |= in.is_cut && !is_image && want(g, node->inputs[i], &in);
        if (node_takes_ref(node, i) && !cut_equal(&g->cut[node->inputs[i].node], &in))
            return false;
    }
    return true;
}

/* Returns whether its value is the shape of what is cut, of which the batch at most is unknown. */
static bool is_shape(const struct grid *g, const struct node *node)
{
    struct shape value;
    if (!node_has(node, OP_SHAPE_ONLY) || !node->op->def->value || node->n_inputs != 1 ||
        !grid_cut_of(g, node->inputs[0]).is_cut || node->outputs[0].shape.rank != 1 ||
        !graph_constant_shape(g->r.from, (struct edge){node->id, 0}, &value))
        return false;
    const struct shape *in = &graph_output(g->r.from, node->inputs[0])->shape;
    for (int i = 1; i < in->rank; i++)
        if (value.dims[i] < 0)
            return false;
    return in->rank > 0 && shape_equal(&value, in);
}

/* ---- the search ---- */

static bool cut_node(struct grid *g, const struct node *node)
{
    bool changed = false;
    struct partition cut = {0};
    if (g->r.frames->frame[node->id] != FRAME_ROOT || g->role[node->id] == GRID_VARIABLE)
        return false;
    enum grid_role role = find_tiles(g, node, &cut, &changed) ? GRID_TILES
                          : is_shape(g, node)                 ? GRID_SHAPE
                                                              : GRID_ONCE;
    g->role[node->id] = (char)role;
    g->cut[node->id] = role == GRID_TILES ? cut : (struct partition){0};
    for (int i = 0; role == GRID_ONCE && i < node->n_inputs; i++) {
        int variable = node->inputs[i].node;
        if (!node_takes_ref(node, i) || !g->cut[variable].is_cut || g->stays_whole[variable])
            continue;
        g->stays_whole[variable] = g->is_found_anew = changed = true;
    }
    return changed;
}

/* Visits until nothing changes. When a variable has to be whole, all is found anew. */
static void grid_find(struct grid *g)
{
    size_t n = g->r.from->nodes.n;
    for (bool changed = true; changed; g->is_found_anew = false) {
        changed = false;
        for (size_t i = 0; i < n; i++)
            changed |= cut_node(g, graph_node(g->r.from, g->r.order[i]));
        if (g->is_found_anew) {
            memset(g->role, 0, n);
            memset(g->cut, 0, n * sizeof *g->cut);
        }
    }
}

/* ---- devices, names, groups ---- */

/* The device of a node that the result has only once. */
static const char *device_once(const struct grid *g, const struct node *node)
{
    const struct node *leader = group_first_leader(g->r.from, node);
    if (leader && g->cut[leader->id].is_cut)
        return g->devices[0];
    if (*node->device)
        return node->device;
    return leader && *leader->device ? leader->device : g->devices[0];
}

static const char *name_in_cell(struct grid *g, const char *name, int cell)
{
    return arena_printf(&g->r.to->arena, "%s_%d/%s", g->prefix, cell, name);
}

/* A builder of nodes below a node's name, for a cell; -1: for nodes that the result has once. */
static struct build *grid_builder(struct grid *g, const struct node *node, int cell)
{
    const char *scope = cell < 0 ? arena_printf(&g->r.arena, "%s/%s", g->prefix, node->name)
                                 : name_in_cell(g, node->name, cell);
    const char *device = cell < 0 ? device_once(g, node) : g->devices[cell];
    g->b = rewrite_build(&g->r, node, scope, device);
    return &g->b;
}

/* ---- copies ---- */

/* Parts of variables lead the groups that the variables led. A node that was with another cut node
 * has a device already. */
static const char *leader_of_cell(void *context, const struct node *leader, int cell)
{
    const struct grid *g = context;
    if (g->names[leader->id])
        return g->names[leader->id][cell < 0 ? 0 : cell];
    return g->cut[leader->id].is_cut || cell > 0 ? NULL : leader->name;
}

/* A gradient is handed over for the part of the variable. */
static bool grid_keeps(void *context, const struct node *node, int cell, struct attr *attr)
{
    const struct grid *g = context;
    (void)node;
    if (cell < 0 || strcmp(attr->name, "_gradient") != 0 || attr->value.kind != ATTR_STRING)
        return true;
    const struct node *variable = graph_find(g->r.from, attr->value.s);
    bool cut = variable && g->names[variable->id];
    if (cut)
        attr->value = attr_string(g->names[variable->id][cell]);
    return cut;
}

/* The node again for a cell, with these inputs; `more` replaces attributes, as in rewrite.h. */
static struct edge grid_copy(struct grid *g, const struct node *node, int cell,
                             const struct edge *inputs, const struct attr *more)
{
    const char *name = name_in_cell(g, node->name, cell), *device = g->devices[cell];
    int n = node->n_inputs;
    return rewrite_add_copy(&g->r,
                            &(struct rewrite_copy){node, cell, name, device, inputs, n, more});
}

static struct edge *new_edges(struct grid *g, int n)
{
    return arena_array(&g->r.arena, (size_t)n + 1, sizeof(struct edge));
}

/* Unless something has failed: parts are the node's from now on, and stand for it to those that
 * wait for it. */
static int stand_in(struct grid *g, const struct node *node, struct edge *parts)
{
    if (g->r.err->code)
        return g->r.err->code;
    rewrite_await_parts(&g->r, node, parts, g->n);
    rewrite_note(&g->r, node->name, "cut into tiles");
    g->parts[node->id] = parts;
    return 0;
}

/* A node of the result that stands for one that is not cut, under its name. */
static int is_now(struct grid *g, const struct node *node, struct edge edge)
{
    if (g->r.err->code)
        return g->r.err->code;
    rewrite_stand_in(&g->r, node, edge.node);
    rewrite_note(&g->r, node->name, "of all tiles");
    return graph_rename(g->r.to, graph_node(g->r.to, edge.node), node->name, g->r.err);
}

/* ---- regions: what a cell has of its own tile and what it gets of others' ----
 *
 * Each is made once, however many ops look at it. All return EDGE_NONE once something has failed.
 */

/* A value put together, whoever asks for it. */
static struct edge grid_whole(void *context, const struct node *asker, struct edge edge)
{
    struct grid *g = context;
    const struct node *node = graph_node(g->r.from, edge.node);
    (void)asker;
    if (edge.slot == CONTROL_SLOT)
        return EDGE_NONE;
    struct edge there = rewrite_edge(&g->r, edge);
    if (edge_exists(there) || g->r.err->code || !g->parts[edge.node])
        return there;
    there = cut_join(grid_builder(g, node, -1), &g->cut[edge.node], g->parts[edge.node]);
    g->r.edges[g->r.first[edge.node] + edge.slot] = there;
    if (edge_exists(there) && !node->outputs[0].is_ref && !graph_find(g->r.to, node->name))
        graph_rename(g->r.to, graph_node(g->r.to, there.node), node->name, g->r.err);
    rewrite_note(&g->r, node->name, "put together");
    return there;
}

static struct edge grid_take(struct grid *g, struct edge edge, const struct partition *cut,
                             struct area area, int cell);

/* The area of a part, beside a cell, below the name of a node. */
static struct edge crop(struct grid *g, const struct node *node, const struct grid_part *part,
                        struct area area, int cell)
{
    if (area_equal(area, part->area) || g->r.err->code)
        return part->edge;
    return cut_slice(grid_builder(g, node, cell), part->edge, &part->cut,
                     area_within(area, part->area));
}

static struct edge assemble(struct grid *g, const struct grid_part *part)
{
    const struct node *node = graph_node(g->r.from, part->of.node);
    struct grid_part tile = {.edge = g->parts[node->id][part->cell],
                             .cut = part->cut,
                             .area = cut_area(&part->cut, part->cell)};
    if (area_equal(area_meet(tile.area, part->area), part->area))
        return crop(g, node, &tile, part->area, part->cell);
    struct edge *pieces = arena_array(&g->r.arena, (size_t)g->n, sizeof *pieces);
    for (int k = 0; k < g->n; k++) {
        struct area area = area_meet(part->area, cut_area(&part->cut, k));
        pieces[k] = area_is_empty(area) ? EDGE_NONE : grid_take(g, part->of, &part->cut, area, k);
    }
    return cut_join(grid_builder(g, node, part->cell), &part->cut, pieces);
}

/* The area of a value that is cut so, on the cell's device; the whole value if it is not cut. */
static struct edge grid_take(struct grid *g, struct edge edge, const struct partition *cut,
                             struct area area, int cell)
{
    const struct node *node = graph_node(g->r.from, edge.node);
    struct partition is = grid_cut_of(g, edge);
    struct grid_part part = {.of = edge, .cell = cell};
    if (g->r.err->code)
        return EDGE_NONE;
    if (cut->is_cut)
        part.cut = *cut, part.area = area;
    for (const struct grid_part *p = g->known[edge.node]; p; p = p->next)
        if (p->cell == cell && edge_equal(p->of, edge) && cut_equal(&p->cut, &part.cut) &&
            area_equal(p->area, part.area))
            return p->edge;
    if (!cut->is_cut) { /* A constant is wherever it is needed. */
        bool is_here = node_is(node, "Const") && !node->n_controls;
        part.edge = is_here ? grid_copy(g, node, cell, NULL, NULL) : grid_whole(g, NULL, edge);
    } else if (cut_equal(&is, cut)) {
        part.edge = assemble(g, &part);
    } else { /* Of what is whole, beside it: only the area is sent. */
        struct edge whole = grid_whole(g, NULL, edge);
        struct build *b = grid_builder(g, node, cell);
        if (!edge_exists(whole))
            return EDGE_NONE;
        b->device = graph_node(g->r.to, whole.node)->device;
        part.edge = cut_slice(b, whole, cut, area);
    }
    if (edge_exists(part.edge)) {
        part.next = g->known[edge.node];
        g->known[edge.node] = arena_copy(&g->r.arena, &part, sizeof part);
    }
    return part.edge;
}

/* ---- and back ----
 *
 * What windows give their regions of the image: each cell sends back what is in another's tile.
 *
 * The borders of all that a tile gets part it into blocks, of which each is a sum of some; most of
 * a tile is one block that only its own cell gives. So sums are made of the halo alone. */

/* Zeros of the size of an area, with the type and the other axes of a value that is cut so: one
 * place of the value, made zero and padded to the area. */
static struct edge make_zeros(struct build *b, struct edge like, const struct partition *cut,
                              struct area area)
{
    int32_t pads[2 * SHAPE_RANK_MAX] = {0};
    struct shape shape = shape_matrix(build_shape(b, like)->rank, 2);
    struct tensor paddings = tensor_borrow(INT32, &shape, pads);
    struct edge cell = cut_slice(b, like, cut, (struct area){.to = {1, 1}});
    for (int d = 0; d < 2; d++)
        pads[2 * cut->axis[d] + 1] = (int32_t)(area.to[d] - area.from[d] - 1);
    cell = build_unary(b, "ZerosLike", cell);
    return build_binary(b, "Pad", cell, build_const(b, &paddings));
}

struct scatter {
    struct grid *g;
    const struct node *node;
    int to;                  /* whose tile is made */
    struct grid_part *given; /* by cell: what it has of it, on `to` */
    int64_t *borders[2];     /* of blocks */
    int n_borders[2];
};

static void add_borders(struct scatter *s, struct area area)
{
    for (int d = 0; d < 2; d++) {
        for (int end = 0; end < 2; end++) {
            int64_t *borders = s->borders[d], at = end ? area.to[d] : area.from[d];
            int i = s->n_borders[d];
            while (i > 0 && borders[i - 1] > at)
                i--;
            if (i > 0 && borders[i - 1] == at)
                continue;
            for (int k = s->n_borders[d]++; k > i; k--)
                borders[k] = borders[k - 1];
            borders[i] = at;
        }
    }
}

/* The sum of what windows give a block; where none sees it there are zeros like those given. */
static struct edge make_block(const struct scatter *s, const struct partition *cut,
                              struct area block)
{
    struct grid *g = s->g;
    struct edge *terms = arena_array(&g->r.arena, (size_t)g->n, sizeof *terms), like = EDGE_NONE;
    int n = 0;
    for (int k = 0; k < g->n && !g->r.err->code; k++) {
        if (!edge_exists(s->given[k].edge))
            continue;
        like = edge_exists(like) ? like : s->given[k].edge;
        if (!area_is_empty(area_meet(s->given[k].area, block)))
            terms[n++] = crop(g, s->node, &s->given[k], block, s->to);
    }
    struct build *b = grid_builder(g, s->node, s->to);
    if (n > 1)
        return build_op(b, "AddN", terms, n, NULL, 0);
    return n ? terms[0] : make_zeros(b, like, cut, block);
}

static struct edge make_tile(const struct scatter *s, const struct partition *cut)
{
    struct partition blocks = *cut;
    for (int d = 0; d < 2; d++)
        blocks.n[d] = s->n_borders[d] - 1;
    struct edge *made = new_edges(s->g, blocks.n[0] * blocks.n[1]);
    for (int i = 0; i < blocks.n[0] * blocks.n[1]; i++) {
        const int64_t *y = s->borders[0] + i / blocks.n[1], *x = s->borders[1] + i % blocks.n[1];
        made[i] = make_block(s, cut, (struct area){{y[0], x[0]}, {y[1], x[1]}});
    }
    return cut_join(grid_builder(s->g, s->node, s->to), &blocks, made);
}

/* What the cells have of each other's tiles is added in their order, and becomes the node's tiles:
 * parts[k] has areas[k]. */
static void grid_scatter(struct grid *g, const struct node *node, const struct partition *cut,
                         const struct area *areas, const struct edge *parts)
{
    size_t n = (size_t)g->n;
    struct scatter s = {.g = g, .node = node};
    struct edge *tiles = arena_array(&g->r.arena, n, sizeof *tiles);
    s.given = arena_array(&g->r.arena, n, sizeof *s.given);
    for (int d = 0; d < 2; d++)
        s.borders[d] = arena_array(&g->r.arena, 2 * n + 2, sizeof **s.borders);
    for (s.to = 0; s.to < g->n && !g->r.err->code; s.to++) {
        /* Each cell sends what it has of the tile. */
        struct area tile = cut_area(cut, s.to);
        memset(s.n_borders, 0, sizeof s.n_borders);
        add_borders(&s, tile);
        for (int k = 0; k < g->n; k++) {
            struct grid_part *given = &s.given[k];
            struct area area = area_meet(areas[k], tile);
            *given = (struct grid_part){.edge = EDGE_NONE, .cut = *cut, .area = areas[k]};
            if (area_is_empty(area) || g->r.err->code)
                continue;
            add_borders(&s, area);
            given->edge = parts[k];
            if (k == s.to)
                continue;
            given->edge = crop(g, node, given, area, k);
            given->area = area;
        }
        tiles[s.to] = g->r.err->code ? EDGE_NONE : make_tile(&s, cut);
    }
    g->parts[node->id] = tiles;
}

/* ---- windows ---- */

/* The shape as a vector; an unknown batch size is taken from the cell's value `like`. */
static struct edge shape_vector_of(struct build *b, enum dtype type, const struct shape *shape,
                                   struct edge like)
{
    int64_t elements[SHAPE_RANK_MAX], none = 0, one = 1;
    int first = shape->dims[0] < 0 ? 1 : 0;
    struct shape length = shape_vector(shape->rank - first);
    struct tensor value = tensor_borrow(type, &length, elements);
    for (int i = first; i < shape->rank; i++)
        tensor_set_int64(&value, i - first, shape->dims[i]);
    struct edge rest = build_const(b, &value);
    if (!first)
        return rest;
    struct attr out = {"out_type", attr_type(type)};
    struct edge batch[] = {build_op(b, "Shape", &like, 1, &out, 1), build_ints(b, &none, 1),
                           build_ints(b, &one, 1)};
    struct edge both[] = {build_op(b, "Slice", batch, 3, NULL, 0), rest};
    return cut_concat(b, 0, both, 2);
}

static struct area area_for(const struct grid_rule *r, bool is_image, int cell)
{
    return is_image ? grid_region(r, cell).area : cut_area(&r->cut, cell);
}

/* The shape of the cell's part of the result. Where the result is what windows look at, what they
 * make has its batch. */
static struct edge sizes_of(struct grid *g, const struct grid_rule *r, int cell)
{
    const struct node *node = r->rule.node;
    bool is_image;
    struct partition cut = grid_cut_for(r, RULE_RESULT, &is_image);
    struct area area = area_for(r, is_image, cell);
    struct shape shape = node->outputs[0].shape;
    struct edge like = EDGE_NONE;
    for (int d = 0; d < 2; d++)
        shape.dims[cut.axis[d]] = area.to[d] - area.from[d];
    for (int i = 0; i < node->n_inputs && is_image && !edge_exists(like); i++) {
        bool sees;
        struct partition in = grid_cut_for(r, i, &sees);
        if (in.axis[0] == cut.axis[0])
            like = grid_take(g, node->inputs[i], &in, cut_area(&in, cell), cell);
    }
    return shape_vector_of(grid_builder(g, node, cell), INT32, &shape, like);
}

static struct edge input_of(struct grid *g, const struct grid_rule *r, int i, int cell)
{
    const struct node *node = r->rule.node;
    const struct rule_operand *operand = rule_operand(node->op, i);
    bool is_image;
    struct partition cut = grid_cut_for(r, i, &is_image);
    if (operand && operand->is_shape && g->cut[node->id].is_cut)
        return sizes_of(g, r, cell);
    return grid_take(g, node->inputs[i], &cut, area_for(r, is_image, cell), cell);
}

/* A tile at the border of the image has the padding that is there. */
static struct edge copy_with_padding(struct grid *g, const struct grid_rule *r, int cell,
                                     const struct edge *inputs)
{
    struct grid_region region = grid_region(r, cell);
    int64_t pads[8] = {0}, all = 0;
    for (int d = 0; d < 2; d++) {
        int64_t *pad = pads + 2 * r->image.axis[d];
        all += (pad[0] = region.before[d]) + (pad[1] = region.after[d]);
    }
    const struct attr padding[] = {{"padding", attr_string(all ? "EXPLICIT" : "VALID")},
                                   {"explicit_paddings", attr_ints(pads, all ? 8 : 0)},
                                   {.name = NULL}};
    return grid_copy(g, r->rule.node, cell, inputs, padding);
}

static int visit_tiles(struct grid *g, const struct node *node)
{
    struct grid_rule r;
    struct edge *inputs = new_edges(g, node->n_inputs), *parts = new_edges(g, g->n);
    struct area *areas = arena_array(&g->r.arena, (size_t)g->n, sizeof *areas);
    bool is_image, is_padded = op_find_attr(node->op, "explicit_paddings") >= 0;
    grid_rule(g, node, &r);
    struct partition cut = grid_cut_for(&r, RULE_RESULT, &is_image);
    for (int k = 0; k < g->n; k++) {
        for (int i = 0; i < node->n_inputs; i++)
            inputs[i] = input_of(g, &r, i, k);
        parts[k] =
            is_padded ? copy_with_padding(g, &r, k, inputs) : grid_copy(g, node, k, inputs, NULL);
        areas[k] = area_for(&r, is_image, k);
        if (cut.is_cut || r.rule.sign != RULE_MEAN)
            continue;
        /* In a mean each tile counts by its share of the cells. */
        double share =
            (double)((areas[k].to[0] - areas[k].from[0]) * (areas[k].to[1] - areas[k].from[1])) /
            (double)(r.cut.size[0] * r.cut.size[1]);
        struct build *b = grid_builder(g, node, k);
        parts[k] = build_binary(b, "Mul", parts[k], build_scalar_like(b, parts[k], share));
    }
    if (!cut.is_cut) {
        struct build *b = grid_builder(g, node, -1);
        return is_now(g, node,
                      r.rule.sign == RULE_ALL ? cut_ask(b, parts, g->n)
                                              : build_op(b, "AddN", parts, g->n, NULL, 0));
    }
    if (!stand_in(g, node, parts) && is_image)
        grid_scatter(g, node, &cut, areas, parts);
    return g->r.err->code;
}

/* ---- all ---- */

static int visit(struct grid *g, const struct node *node)
{
    enum grid_role role = (enum grid_role)g->role[node->id];
    if (role == GRID_VARIABLE)
        return 0; /* is there */
    if (role == GRID_TILES)
        return visit_tiles(g, node);
    if (role == GRID_SHAPE) {
        struct edge in = node->inputs[0], tile = g->parts[in.node][0];
        struct edge shape = shape_vector_of(grid_builder(g, node, 0), node->outputs[0].type,
                                            &graph_output(g->r.from, in)->shape, tile);
        return is_now(g, node, shape);
    }
    graph_set_device(g->r.to, rewrite_copy(&g->r, node), device_once(g, node));
    return g->r.err->code;
}

/* ---- the graph ---- */

bool grid_parse(struct grid_options *options, const char *text)
{
    int end = 0;
    *options = (struct grid_options){.rows = 0};
    return sscanf(text, "%4dx%4d%n", &options->rows, &options->columns, &end) == 2 && !text[end] &&
           options->rows > 0 && options->columns > 0 && options->rows * options->columns >= 2 &&
           options->rows * options->columns <= GRID_CELLS_MAX;
}

static int open_grid(struct grid *g)
{
    const char *pattern = g->options->device ? g->options->device : "/job:worker/task:*";
    size_t n = g->r.from->nodes.n + 1;
    g->devices = arena_array(&g->r.arena, (size_t)g->n, sizeof *g->devices);
    g->role = arena_alloc(&g->r.arena, n);
    g->stays_whole = arena_alloc(&g->r.arena, n);
    g->cut = arena_array(&g->r.arena, n, sizeof *g->cut);
    g->parts = arena_array(&g->r.arena, n, sizeof *g->parts);
    g->names = arena_array(&g->r.arena, n, sizeof *g->names);
    g->known = arena_array(&g->r.arena, n, sizeof *g->known);
    g->prefix = graph_free_prefix(&g->r.to->arena, g->r.from, "tile");
    for (int k = 0; k < g->n; k++) {
        /* The pattern with the cell's number for its "*". */
        struct device_name name;
        struct error why = ERROR_INIT;
        const char *text =
            strchr(pattern, '*') ? device_pattern_text(&g->r.arena, pattern, k) : NULL;
        if (!text)
            return error_set(g->r.err, ERR_USAGE,
                             "--towers '%s' is no device with a '*' for the cell's number",
                             pattern);
        if (device_name_parse(&name, text, &why))
            return error_set(g->r.err, ERR_USAGE, "--towers '%s': %s", pattern, why.text);
        g->devices[k] = device_name_text(&g->r.to->arena, &name);
    }
    return 0;
}

static int build(struct grid *g)
{
    bool found = false;
    g->r.rules = (struct copy_rules){g->r.from, g->r.to, leader_of_cell, grid_keeps, g};
    g->r.make = grid_whole;
    if (frames_new(g->r.from, &g->r.frames, g->r.err) || open_grid(g))
        return g->r.err->code;
    grid_find(g);
    /* Slots are with their variables: names are known before the first of them is made. */
    graph_each(node, g->r.from) {
        found |= g->role[node->id] == GRID_TILES;
        if (g->role[node->id] == GRID_VARIABLE)
            g->names[node->id] = cut_names(&g->r, node, g->n);
    }
    if (!found)
        return error_set(g->r.err, ERR_DATA,
                         "no op with windows has images of known size that %d x %d tiles can be "
                         "cut of",
                         g->options->rows, g->options->columns);
    graph_each(node, g->r.from) {
        if (g->role[node->id] == GRID_VARIABLE &&
            stand_in(g, node,
                     cut_variable(&g->r, node, &g->cut[node->id], g->names[node->id], g->devices)))
            return g->r.err->code;
    }
    graph_each_ordered(node, g->r.from, g->r.order) {
        if (visit(g, node))
            return g->r.err->code;
    }
    /* Nodes that entries, aliases or the script name are made whole. */
    rewrite_make_named(&g->r);
    graph_each(node, g->r.from) {
        if (g->cut[node->id].is_cut && node->n_outputs == 1 && !node->outputs[0].is_ref &&
            !strchr(node->name, '/') && rewrite_has_own_name(&g->r, node))
            grid_whole(g, node, (struct edge){node->id, 0});
    }
    return g->r.err->code;
}

int grid_graph(const struct graph *from, const struct grid_options *options, struct graph **to,
               struct error *err)
{
    struct grid g = {.options = options, .n = options->rows * options->columns};
    *to = NULL;
    return rewrite_open(&g.r, from, options->pass, err) ? err->code
                                                        : rewrite_finish(&g.r, build(&g), to);
}
