/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of records with partitioned variables: random grids are read into other random grids, and
 * each element is checked. SLICES is how many (default 300), SLICES_SEED the first one's seed.
 */
#include <fcntl.h>
#include <inttypes.h>

#include "checkpoint/formats/source.h"
#include "exec/state/saver.h"
#include "graph/text.h"
#include "lib/stores.h"
#include "ops/ops.h"

#define CELLS_MAX 5 /* along an axis */
#define RANK_MAX 4

struct grid {
    const char *type;
    struct shape whole;
    int cells[RANK_MAX];
    int64_t begins[RANK_MAX][CELLS_MAX + 1];
    struct graph *graph; /* a variable for each cell */
};

static int below(uint64_t *state, int64_t n)
{
    return (int)(unit_random(state) % (uint64_t)n);
}

/* ---- grids ---- */

static int cell_count(const struct grid *g)
{
    int n = 1;
    for (int i = 0; i < g->whole.rank; i++)
        n *= g->cells[i];
    return n;
}

static struct box cell_of(const struct grid *g, int k)
{
    struct box box = {.rank = g->whole.rank};
    for (int i = box.rank - 1; i >= 0; k /= g->cells[i], i--) {
        const int64_t *begin = &g->begins[i][k % g->cells[i]];
        box.first[i] = begin[0];
        box.size[i] = begin[1] - begin[0];
    }
    return box;
}

static void print_numbers(struct str *text, const char *key, const int64_t *numbers, int n)
{
    str_printf(text, "%s[", key);
    for (int i = 0; i < n; i++)
        str_printf(text, "%s%" PRId64, i ? "," : "", numbers[i]);
    str_printf(text, "]");
}

static struct graph *parse(const char *text)
{
    struct error err = ERROR_INIT;
    struct graph *graph;
    if (graph_parse_text(text, strlen(text), "test", ops_registry(), &graph, &err))
        fail_msg("%s: %s", text, err.text);
    return graph;
}

/* A single cell is the variable itself. */
static void make_graph(struct grid *g)
{
    struct str text = STR_INIT;
    int n = cell_count(g);
    for (int k = 0; k < n; k++) {
        struct box box = cell_of(g, k);
        str_printf(&text, n > 1 ? "t/part_%d" : "t", k);
        print_numbers(&text, " = Variable() {shape=", box.size, box.rank);
        str_printf(&text, ", dtype=%s", g->type);
        if (n > 1) {
            print_numbers(&text, ", _slice_of=\"t\", _slice_shape:shape=", g->whole.dims, box.rank);
            print_numbers(&text, ", _slice_offset:list(int)=", box.first, box.rank);
        }
        str_printf(&text, "}\n");
    }
    g->graph = parse(str_text(&text));
    str_release(&text);
}

static void cut(struct grid *g, int axis, uint64_t *state)
{
    int64_t size = g->whole.dims[axis], n = size < CELLS_MAX ? size : CELLS_MAX;
    int cells = 1 + below(state, n), left = cells - 1;
    int64_t *begins = g->begins[axis];
    g->cells[axis] = cells;
    begins[0] = 0;
    for (int64_t i = 1, k = 1; i < size; i++) /* takes `left` of the size - i places left */
        if (below(state, size - i) < left) {
            begins[k++] = i;
            left--;
        }
    begins[cells] = size;
}

static struct shape any_shape(uint64_t *state)
{
    struct shape shape = {.rank = 1 + below(state, RANK_MAX)};
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = 1 + below(state, 7);
    return shape;
}

/* `rows`: cuts along the first axis only, as tables are cut. */
static struct grid any_grid(const struct shape *whole, bool rows, uint64_t *state)
{
    struct grid g = {.type = "int32", .whole = *whole};
    for (int i = 0; i < whole->rank; i++)
        if (!i || !rows) {
            cut(&g, i, state);
        } else {
            g.cells[i] = 1;
            g.begins[i][1] = whole->dims[i];
        }
    make_graph(&g);
    return g;
}

static struct grid whole_grid(const struct shape *whole)
{
    struct grid g = {.type = "int32", .whole = *whole};
    for (int i = 0; i < whole->rank; i++) {
        g.cells[i] = 1;
        g.begins[i][1] = whole->dims[i];
    }
    make_graph(&g);
    return g;
}

/* ---- values ---- */

/* The value of element i of a box: its number in the whole, which no other element has. */
static int32_t element(const struct shape *whole, const struct box *box, int64_t i)
{
    int64_t number = 0, unit = 1;
    for (int k = box->rank - 1; k >= 0; k--) {
        number += (box->first[k] + i % box->size[k]) * unit;
        unit *= whole->dims[k];
        i /= box->size[k];
    }
    return (int32_t)number;
}

static void make_value(const struct grid *g, int k, struct tensor *value)
{
    struct error err = ERROR_INIT;
    struct box box = cell_of(g, k);
    struct shape shape = {.rank = box.rank};
    memcpy(shape.dims, box.size, sizeof shape.dims);
    assert_int_equal(tensor_alloc(value, INT32, &shape, &err), 0);
    for (int64_t i = 0; i < tensor_count(value); i++)
        ((int32_t *)value->data)[i] = element(&g->whole, &box, i);
}

static void check_value(const struct grid *g, int k, const struct tensor *value)
{
    struct box box = cell_of(g, k);
    assert_int_equal(tensor_count(value), box_count(&box));
    for (int64_t i = 0; i < tensor_count(value); i++)
        assert_int_equal(((const int32_t *)value->data)[i], element(&g->whole, &box, i));
}

/* ---- files ---- */

struct file {
    const char *folder;
    char path[STORES_PATH_BYTES + 16];
    int fd;
    struct stream_writer *writer;
};

static void file_begin(struct file *f)
{
    f->folder = stores_folder();
    snprintf(f->path, sizeof f->path, "%s/x.ckpt", f->folder);
    f->fd = open(f->path, O_WRONLY | O_CREAT, 0600);
    f->writer = stream_writer_new(f->fd, f->path, "test", -1);
}

static void put(struct file *f, const struct grid *g, int k, const struct tensor *value)
{
    struct error err = ERROR_INIT;
    const struct saved_variable saved = {graph_node(g->graph, k), *value, 7};
    if (variable_write(&saved, 1, f->writer, &err))
        fail_msg("%s", err.text);
}

static void put_cell(struct file *f, const struct grid *g, int k)
{
    struct tensor value;
    make_value(g, k, &value);
    put(f, g, k, &value);
    tensor_release(&value);
}

/* Puts all cells but one, beginning at a random one. */
static void put_cells(struct file *f, const struct grid *g, int but, uint64_t *state)
{
    int n = cell_count(g), from = below(state, n);
    for (int i = 0; i < n; i++)
        if ((from + i) % n != but)
            put_cell(f, g, (from + i) % n);
}

static void file_end(struct file *f)
{
    struct error err = ERROR_INIT;
    assert_int_equal(stream_finish(f->writer, &err), 0);
    stream_writer_free(f->writer);
    close(f->fd);
}

static int load(const struct file *f, const struct grid *g, struct error *err)
{
    const struct load_request wanted = {.graph = g->graph};
    saved_variables saved = VEC_INIT;
    int64_t step;
    int fd = open(f->path, O_RDONLY);
    struct stream_reader *reader = stream_reader_new(fd, "x.ckpt");
    int code = variables_load(&wanted, reader, &saved, &step, err);
    if (!code) {
        assert_int_equal(saved.n, cell_count(g));
        for (int k = 0; k < (int)saved.n; k++) {
            assert_int_equal(saved.items[k].updates, 7);
            check_value(g, k, &saved.items[k].value);
        }
    }
    saved_release(&saved);
    stream_reader_free(reader);
    close(fd);
    return code;
}

/* Loads as tools load files of other programs. */
static int load_whole(const struct file *f, const struct grid *whole, struct error *err)
{
    struct source source;
    struct tensor value;
    if (source_open(f->path, &source, err))
        return err->code;
    if (!source_join_slices(&source, err) && !source_read(&source, 0, &value, err)) {
        assert_int_equal(source.tensors.n, 1);
        assert_string_equal(source.tensors.items[0].saved.name, "t");
        check_value(whole, 0, &value);
        tensor_release(&value);
    }
    source_close(&source);
    return err->code;
}

static void file_remove(struct file *f)
{
    stores_remove(f->folder);
}

/* ---- all is there ---- */

static void one_grid_into_others(uint64_t seed)
{
    uint64_t state = seed;
    struct error err = ERROR_INIT;
    struct shape shape = any_shape(&state);
    struct grid saved = any_grid(&shape, seed % 2, &state), whole = whole_grid(&shape);
    struct file f;
    file_begin(&f);
    put_cells(&f, &saved, -1, &state);
    file_end(&f);
    if (load(&f, &whole, &err) || load(&f, &saved, &err) || load_whole(&f, &whole, &err))
        fail_msg("seed %" PRIu64 ": %s", seed, err.text);
    for (int i = 0; i < 3; i++) {
        struct grid other = any_grid(&shape, i == 0, &state);
        if (load(&f, &other, &err))
            fail_msg("seed %" PRIu64 ": %s", seed, err.text);
        graph_free(other.graph);
    }
    file_remove(&f);
    graph_free(saved.graph);
    graph_free(whole.graph);
}

static void any_cut_goes_into_any_other(void **unused)
{
    const struct seed_range seeds = seeds_of("SLICES", 300);
    (void)unused;
    for (int i = 0; i < seeds.n; i++)
        one_grid_into_others(seeds.first + (uint64_t)i);
}

/* ---- gaps ---- */

static void one_cell_is_missing(uint64_t seed)
{
    uint64_t state = seed;
    struct error err = ERROR_INIT;
    struct shape shape = any_shape(&state);
    struct grid saved = any_grid(&shape, true, &state), whole = whole_grid(&shape);
    struct file f;
    char line[128];
    int n = cell_count(&saved), missing = below(&state, n), rows = (int)shape.dims[0];
    int64_t again = 0;
    struct box gap = cell_of(&saved, missing);
    file_begin(&f);
    put_cells(&f, &saved, missing, &state);
    if (n > 1 && seed % 2) { /* a duplicate of another cell fills no gap */
        put_cell(&f, &saved, (missing + 1) % n);
        again = cell_of(&saved, (missing + 1) % n).size[0];
    }
    file_end(&f);
    if (n == 1)
        snprintf(line, sizeof line, "x.ckpt: variable 't' is not in it");
    else if (again && again < gap.size[0])
        snprintf(line, sizeof line, "x.ckpt: variable 't': not all of %d rows are in it", rows);
    else
        snprintf(line, sizeof line, "x.ckpt: variable 't': %d of %d rows are in it",
                 rows - (int)gap.size[0], rows);
    unit_assert_error(load(&f, &whole, &err), err, ERR_DATA, line);
    error_clear(&err);
    assert_int_equal(load(&f, &saved, &err), ERR_DATA);
    error_clear(&err);
    assert_int_equal(n == 1 || load_whole(&f, &whole, &err), true);
    file_remove(&f);
    graph_free(saved.graph);
    graph_free(whole.graph);
}

static void gaps_are_counted(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 60; seed++)
        one_cell_is_missing(seed);
}

/* ---- overlaps ---- */

/* Adds a cell of another grid, as it is or with one element changed. */
static void one_cell_more(uint64_t seed, bool differs)
{
    uint64_t state = seed;
    struct error err = ERROR_INIT;
    struct shape shape = any_shape(&state);
    struct grid saved = any_grid(&shape, false, &state), more = any_grid(&shape, false, &state);
    struct grid whole = whole_grid(&shape);
    struct tensor value;
    struct file f;
    int k = below(&state, cell_count(&more));
    make_value(&more, k, &value);
    if (differs)
        ((int32_t *)value.data)[below(&state, tensor_count(&value))] ^= 1 << below(&state, 31);
    file_begin(&f);
    if (seed % 2)
        put(&f, &more, k, &value);
    put_cells(&f, &saved, -1, &state);
    if (!(seed % 2))
        put(&f, &more, k, &value);
    file_end(&f);
    const char *line = "x.ckpt: variable 't': elements are in it twice, and differ";
    if (differs) {
        unit_assert_error(load(&f, &whole, &err), err, ERR_DATA, line);
        error_clear(&err);
        assert_int_equal(load(&f, &saved, &err), ERR_DATA);
        error_clear(&err);
        assert_int_equal(load_whole(&f, &whole, &err), ERR_DATA);
    } else if (load(&f, &whole, &err) || load(&f, &saved, &err) || load_whole(&f, &whole, &err)) {
        fail_msg("seed %" PRIu64 ": %s", seed, err.text);
    }
    tensor_release(&value);
    file_remove(&f);
    graph_free(saved.graph);
    graph_free(more.graph);
    graph_free(whole.graph);
}

static void what_is_there_twice_must_be_the_same(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        one_cell_more(seed, false);
        one_cell_more(seed, true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_cut_goes_into_any_other),
        cmocka_unit_test(gaps_are_counted),
        cmocka_unit_test(what_is_there_twice_must_be_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
