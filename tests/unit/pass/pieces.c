/* SPDX-License-Identifier: Apache-2.0
 *
 * Random perceptrons that workers train, whose gradients are made, summed and used in chunks: all
 * variables and losses have the same bits as with whole gradients. PIECES is the number of seeds,
 * PIECES_SEED the first.
 */
#include "lib/local_collective.h"
#include "lib/random.h"
#include "lib/replicas.h"

#define SEEDS 24
#define STEPS 4
#define ROWS 6

static const char *const optimizers[] = {"sgd{rate = 0.1}",
                                         "momentum{rate = 0.1, momentum = 0.9}",
                                         "momentum{rate = 0.1, momentum = 0.9, nesterov = true}",
                                         "adagrad{rate = 0.1}",
                                         "adadelta{rate = 1}",
                                         "rmsprop{rate = 0.01}",
                                         "adam{rate = 0.01}",
                                         "ftrl{rate = 0.1}"};
#define OPTIMIZERS (int)(sizeof optimizers / sizeof *optimizers)

struct trial {
    uint64_t seed;
    int n_workers, inputs;
    struct str script, mode;
};

static void add_model(struct trial *t, uint64_t *state)
{
    int layers = 1 + (int)(unit_random(state) % 3);
    t->inputs = 1 + (int)(unit_random(state) % 300);
    str_printf(&t->script, "x = Placeholder{dtype = float32, shape = {-1, %d}}\nlocal h = x\n",
               t->inputs);
    for (int i = 0; i < layers; i++)
        str_printf(&t->script, "h = nn.dense(h, %d, {name = 'h%d', activation = Tanh})\n",
                   1 + (int)(unit_random(state) % (i + 1 < layers ? 300 : 20)), i);
    str_printf(&t->script,
               "loss = Mean(Mean(Square(h - 0.5), 1), 0)\n"
               "entry.train = {minimize(loss, optim.%s), loss}\n",
               optimizers[unit_random(state) % OPTIMIZERS]);
}

static void trial_open(struct trial *t, uint64_t seed)
{
    uint64_t state = seed;
    *t = (struct trial){.seed = seed, .n_workers = 1 + (int)(unit_random(&state) % 3)};
    add_model(t, &state);
    str_printf(&t->mode, "allreduce,pieces=%d", 1 << unit_random(&state) % 15);
}

static void trial_close(struct trial *t)
{
    str_release(&t->script);
    str_release(&t->mode);
}

/* ---- a job ---- */

struct job {
    struct replicas replicas;
    float losses[WORKERS_MAX][STEPS];
};

struct life {
    const struct trial *trial;
    struct replica *worker;
    float *losses;
    pthread_t thread;
    struct error err;
};

static void *live(void *argument)
{
    struct life *life = argument;
    struct replica *w = life->worker;
    struct shape shape = {.rank = 2, .dims = {ROWS, life->trial->inputs}};
    float *rows = malloc((size_t)shape_count(&shape) * sizeof *rows);
    uint64_t state = life->trial->seed + w->rank;
    struct step init = {.number = 0};
    int code = worker_run(w, &init, "init", NULL, 0, NULL, &life->err);
    for (int i = 0; i < STEPS && !code; i++) {
        struct step step = {.number = i + 1};
        struct tensor loss;
        for (int64_t k = 0; k < shape_count(&shape); k++)
            rows[k] = (float)(int)(unit_random(&state) % 17) / 8 - 1;
        struct feed feed = {"x", tensor_borrow(FLOAT32, &shape, rows)};
        code = worker_run(w, &step, "train", &feed, 1, &loss, &life->err);
        if (code)
            break;
        life->losses[i] = (float)tensor_get_float64(&loss, 0);
        tensor_release(&loss);
    }
    free(rows);
    return NULL;
}

static void train(const struct trial *t, const char *mode, struct job *job)
{
    struct collective *members[WORKERS_MAX];
    struct life lives[WORKERS_MAX];
    replicas_open(&job->replicas, scripts_build(str_text(&t->script)), NULL, mode, t->n_workers);
    collective_local_new(t->n_workers, members);
    for (int i = 0; i < t->n_workers; i++) {
        struct replica *w = &job->replicas.workers[i];
        w->collective = members[i];
        lives[i] = (struct life){.trial = t, .worker = w, .losses = job->losses[i]};
        assert_int_equal(pthread_create(&lives[i].thread, NULL, live, &lives[i]), 0);
    }
    for (int i = 0; i < t->n_workers; i++) {
        pthread_join(lives[i].thread, NULL);
        if (lives[i].err.code)
            fail_msg("seed %llu, %s: %s", (unsigned long long)t->seed, mode, lives[i].err.text);
        members[i]->free(members[i]);
    }
}

/* ---- results ---- */

static const struct tensor *value_of(struct job *job, int worker, const struct node *variable)
{
    const struct replica *w = &job->replicas.workers[worker];
    const struct node *node = graph_find(w->joined, variable->name);
    return replicas_variable(&job->replicas, node_string(node, "shared_name"));
}

static void check_same(const struct trial *t, struct job *whole, struct job *pieces)
{
    const struct graph *graph = whole->replicas.replicated;
    for (int w = 0; w < t->n_workers; w++) {
        for (int i = 0; i < STEPS; i++)
            if (memcmp(&whole->losses[w][i], &pieces->losses[w][i], sizeof(float)) != 0)
                fail_msg("seed %llu: worker %d, step %d: %.9g, in pieces %.9g",
                         (unsigned long long)t->seed, w, i, (double)whole->losses[w][i],
                         (double)pieces->losses[w][i]);
        for (size_t i = 0; i < graph->nodes.n; i++) {
            const struct node *node = graph_node(graph, (int)i);
            if (node_is(node, "Variable") &&
                !tensor_equal(value_of(whole, w, node), value_of(pieces, w, node)))
                fail_msg("seed %llu: worker %d, variable '%s'", (unsigned long long)t->seed, w,
                         node->name);
        }
    }
}

static int count_pieces(const struct graph *graph)
{
    int n = 0;
    for (size_t i = 0; i < graph->nodes.n; i++)
        n += node_attr(graph_node(graph, (int)i), "_first_row") != NULL;
    return n;
}

/* Returns how many chunks there were. */
static int try_seed(uint64_t seed)
{
    struct trial t;
    struct job whole, pieces;
    trial_open(&t, seed);
    train(&t, "allreduce,pieces=none", &whole);
    train(&t, str_text(&t.mode), &pieces);
    check_same(&t, &whole, &pieces);
    assert_int_equal(count_pieces(whole.replicas.replicated), 0);
    int n = count_pieces(pieces.replicas.replicated);
    replicas_close(&whole.replicas);
    replicas_close(&pieces.replicas);
    trial_close(&t);
    return n;
}

static void pieces_have_the_bits_of_whole_gradients(void **state)
{
    struct seed_range seeds = seeds_of("PIECES", SEEDS);
    int n = 0;
    (void)state;
    for (int i = 0; i < seeds.n; i++)
        n += try_seed(seeds.first + (uint64_t)i);
    assert_true(seeds.given || n > seeds.n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_have_the_bits_of_whole_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
