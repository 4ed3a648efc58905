/* SPDX-License-Identifier: Apache-2.0
 *
 * The order on a link: more urgent records overtake others under way, all arrive whole, and equally
 * urgent ones arrive in order, over every kind of link.
 */
#include "base/memory.h"
#include "base/time.h"
#include "lib/links.h"
#include "lib/unit.h"

#define HUGE_COUNT (16 << 20) /* elements: 64 MiB */
#define SMALL_COUNT (16 << 10)
#define BIN_BYTES ((size_t)4 << 20) /* on a Unix socket */

static struct peers_options options_of(const char *task)
{
    return (struct peers_options){.task = task, .producer = "test", .no_key = true};
}

static void make_value(struct named_tensor *named, int64_t n, uint32_t seed)
{
    struct error err = ERROR_INIT;
    struct shape shape = shape_vector(n);
    named->name = "x";
    must(tensor_alloc(&named->tensor, FLOAT32, &shape, &err), &err);
    for (int64_t i = 0; i < n; i++)
        ((uint32_t *)named->tensor.data)[i] = (uint32_t)i * 2654435761u + seed;
}

static bool is_value(const struct tensor *t, uint32_t seed)
{
    bool same = true;
    for (int64_t i = 0; i < tensor_count(t) && same; i++)
        same = ((const uint32_t *)t->data)[i] == (uint32_t)i * 2654435761u + seed;
    return same;
}

static void send_value(struct link *link, int64_t id, int32_t priority,
                       const struct named_tensor *value)
{
    struct error err = ERROR_INIT;
    msgpack_packer *packer = link_begin(link, RECORD_VALUE, 1);
    pack_key(packer, "id");
    msgpack_pack_int64(packer, id);
    must(link_send_value(link, priority, value, value != NULL, &err), &err);
}

/* ---- a peer that does not read ---- */

struct taken {
    struct link *link;
    int64_t ids[8];
    uint64_t bytes[8]; /* received by then */
    int n;
};

static void taker_opened(void *context, struct link *link)
{
    ((struct taken *)context)->link = link;
}

static void taker_record(void *context, struct link *link, struct record *record)
{
    struct taken *taken = context;
    assert_true(taken->n < 8);
    assert_true(record_get_int(&record->header, "id", &taken->ids[taken->n]));
    if (record->n_tensors)
        assert_true(is_value(&record->tensors[0].tensor, (uint32_t)taken->ids[taken->n]));
    taken->bytes[taken->n++] = link_stats(link).bytes_in;
}

static void taker_closed(void *context, struct link *link, const struct error *why)
{
    (void)link, (void)why;
    ((struct taken *)context)->link = NULL;
}

static bool never(void *context)
{
    (void)context;
    return false;
}

/* Two ends, each of which runs when the test says so. */
struct pair {
    struct end client;
    struct loop *loop; /* the taker's */
    struct peers *peers;
    struct taken taken;
    char folder[64];
};

static void pair_open(struct pair *p)
{
    struct error err = ERROR_INIT;
    struct peers_options options = options_of("ps:0");
    struct peers_handler handler = {
        .link = {&p->taken, taker_opened, taker_record, taker_closed, NULL}};
    memset(p, 0, sizeof *p);
    end_folder(p->folder);
    options.folder = p->folder;
    options.no_shared_memory = true;
    p->loop = loop_new(&err);
    p->peers = peers_new(p->loop, &options, &handler, &err);
    assert_non_null(p->peers);
    must(peers_listen(p->peers, "unix:s", NULL, &err), &err);
    options.task = "worker:0";
    end_start(&p->client, &options);
    must(peers_connect(p->client.peers, "ps:0", "unix:s", 10, &err), &err);
    for (int i = 0; i < 1000 && !(p->taken.link && p->client.link); i++) {
        loop_run_until(p->loop, never, NULL, 0.01);
        end_pump(&p->client, end_has_records, 1, 0.01);
    }
    assert_non_null(p->taken.link);
    assert_non_null(p->client.link);
}

static void pair_close(struct pair *p)
{
    end_stop(&p->client);
    peers_free(p->peers);
    loop_free(p->loop);
    assert_int_equal(rmdir(p->folder), 0);
}

static void pair_run(struct pair *p, int n)
{
    double end = time_now() + 60;
    while (p->taken.n < n && time_now() < end) {
        loop_run_until(p->loop, never, NULL, 0);
        end_pump(&p->client, end_has_records, 1, 0);
    }
    assert_int_equal(p->taken.n, n);
}

static void what_is_urgent_overtakes(void **state)
{
    (void)state;
    struct pair p;
    struct named_tensor huge, small, second;
    pair_open(&p);
    make_value(&huge, HUGE_COUNT, 1);
    make_value(&small, SMALL_COUNT, 2);
    make_value(&second, SMALL_COUNT, 3);
    send_value(p.client.link, 1, 9, &huge);
    end_pump(&p.client, end_has_records, 1, 0.1); /* as far as the kernel takes it */
    uint64_t sent = link_stats(p.client.link).bytes_out;
    assert_true(sent < (size_t)HUGE_COUNT * 2);
    send_value(p.client.link, 3, 9, &second);
    send_value(p.client.link, 2, 1, &small);
    send_value(p.client.link, 4, LINK_FIRST, NULL);
    pair_run(&p, 4);
    static const int64_t order[] = {4, 2, 1, 3};
    assert_memory_equal(p.taken.ids, order, sizeof order);
    assert_true(p.taken.bytes[1] < sent + 2 * BIN_BYTES);
    assert_int_equal(link_stats(p.taken.link).nested_in, 2);
    tensor_release(&huge.tensor);
    tensor_release(&small.tensor);
    tensor_release(&second.tensor);
    pair_close(&p);
}

#define CROWDED 8

/* All in one call of the loop, where records must not be written one by one. */
static void send_crowded(void *context)
{
    struct pair *p = context;
    struct named_tensor small;
    make_value(&small, 4, 0);
    uint64_t before = link_stats(p->client.link).bytes_out;
    for (uint32_t i = 0; i < CROWDED; i++) {
        for (int64_t k = 0; k < 4; k++)
            ((uint32_t *)small.tensor.data)[k] = (uint32_t)k * 2654435761u + i;
        send_value(p->client.link, i, 5, &small);
    }
    assert_int_equal(link_stats(p->client.link).bytes_out, before);
    assert_true(link_waiting(p->client.link) >= CROWDED * tensor_bytes(&small.tensor));
    tensor_release(&small.tensor);
}

/* When the loop returns, after which it may not run for long, everything is on its way. */
static void small_values_of_a_round_go_in_one_write(void **state)
{
    (void)state;
    struct pair p;
    pair_open(&p);
    loop_post(p.client.loop, send_crowded, &p);
    end_pump(&p.client, end_has_records, 1, 0);
    assert_int_equal(link_waiting(p.client.link), 0);
    for (int i = 0; i < 1000 && p.taken.n < CROWDED; i++)
        loop_run_until(p.loop, never, NULL, 0.01);
    assert_int_equal(p.taken.n, CROWDED);
    for (int i = 0; i < CROWDED; i++)
        assert_int_equal(p.taken.ids[i], i);
    pair_close(&p);
}

/* The end comes after everything else, however late that is. */
static void the_end_comes_last(void **state)
{
    (void)state;
    struct pair p;
    struct named_tensor huge;
    pair_open(&p);
    make_value(&huge, HUGE_COUNT, 1);
    send_value(p.client.link, 1, LINK_LAST, &huge);
    send_value(p.client.link, 2, 1, NULL);
    link_close(p.client.link, NULL);
    pair_run(&p, 2);
    assert_int_equal(p.taken.ids[0], 2);
    tensor_release(&huge.tensor);
    pair_close(&p);
}

/* Records that are half sent and half read are given up with the link. */
static void a_link_may_end_between_bins(void **state)
{
    (void)state;
    struct pair p;
    struct named_tensor values[3];
    pair_open(&p);
    for (int i = 0; i < 3; i++) {
        make_value(&values[i], HUGE_COUNT / 2, (uint32_t)i);
        send_value(p.client.link, i, -i, &values[i]);
        for (int k = 0; k < 3; k++) {
            end_pump(&p.client, end_has_records, 1, 0);
            loop_run_until(p.loop, never, NULL, 0);
        }
        tensor_release(&values[i].tensor);
    }
    peers_free(p.peers);
    assert_true(end_pump(&p.client, end_has_closed, 1, 10));
    end_stop(&p.client);
    loop_free(p.loop);
    assert_int_equal(rmdir(p.folder), 0);
}

/* ---- many threads, sizes and priorities ---- */

#define THREADS 4
#define SENDS 60
#define PRIORITIES 5

struct crowd {
    struct link *link;
    int last[THREADS][PRIORITIES]; /* received */
    atomic_int n, n_wrong;
};

struct sender {
    struct link *link;
    int number;
    pthread_t thread;
};

/* An id contains the sender, the priority and a count. */
static void crowd_record(void *context, struct link *link, struct record *record)
{
    struct crowd *crowd = context;
    int64_t id = -1;
    (void)link;
    bool good = record_get_int(&record->header, "id", &id) && record->n_tensors == 1 &&
                is_value(&record->tensors[0].tensor, (uint32_t)id);
    int *last = &crowd->last[id % THREADS][id / THREADS % PRIORITIES];
    int number = (int)(id / THREADS / PRIORITIES);
    good = good && number >= *last;
    *last = number + 1;
    atomic_fetch_add(&crowd->n_wrong, !good);
    atomic_fetch_add(&crowd->n, 1);
}

static void crowd_opened(void *context, struct link *link)
{
    ((struct crowd *)context)->link = link;
}

static void crowd_closed(void *context, struct link *link, const struct error *why)
{
    (void)link, (void)why;
    ((struct crowd *)context)->link = NULL;
}

static void *send_many(void *argument)
{
    struct sender *sender = argument;
    uint64_t seed = (uint64_t)sender->number + 1;
    for (int i = 0; i < SENDS; i++) {
        int64_t count = (int64_t)1 << (unit_random(&seed) % 21);
        int priority = (int)(unit_random(&seed) % PRIORITIES);
        int64_t id = ((int64_t)i * PRIORITIES + priority) * THREADS + sender->number;
        struct named_tensor value;
        make_value(&value, count, (uint32_t)id);
        send_value(sender->link, id, priority, &value);
        tensor_release(&value.tensor);
    }
    return NULL;
}

static bool all_came(void *context)
{
    return atomic_load(&((struct crowd *)context)->n) == THREADS * SENDS;
}

/* The taker's loop is the test's; the client's runs in a thread, as a server's does. */
static void send_crowd(const char *address, bool shares)
{
    struct error err = ERROR_INIT;
    struct crowd crowd = {0};
    struct end server;
    struct sender senders[THREADS];
    struct peers_options options = options_of("ps:0");
    struct peers_handler handler = {
        .link = {&crowd, crowd_opened, crowd_record, crowd_closed, NULL}};
    options.no_shared_memory = !shares;
    options.shared_bytes = 1; /* the smallest ring */
    options.sums = true;
    end_serve(&server, options, address);
    options.task = "worker:0";
    struct loop *loop = loop_new(&err);
    struct peers *peers = peers_new(loop, &options, &handler, &err);
    must(peers_connect(peers, "ps:0", end_address(&server), 10, &err), &err);
    must(peers_wait(peers, &err), &err);
    struct link *link = peers_find(server.peers, "worker:0");
    for (int i = 0; i < 500 && !link; i++) {
        usleep(10000);
        link = peers_find(server.peers, "worker:0");
    }
    assert_non_null(link);
    for (int i = 0; i < THREADS; i++) {
        senders[i] = (struct sender){.link = link, .number = i};
        assert_int_equal(pthread_create(&senders[i].thread, NULL, send_many, &senders[i]), 0);
    }
    assert_true(loop_run_until(loop, all_came, &crowd, 60));
    assert_int_equal(atomic_load(&crowd.n_wrong), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(senders[i].thread, NULL);
    link_release(link);
    peers_free(peers);
    loop_free(loop);
    end_stop(&server);
}

static void all_arrive_whole_and_in_order(void **state)
{
    (void)state;
    send_crowd("127.0.0.1:0", false);
    send_crowd(NULL, false);
    send_crowd(NULL, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_urgent_overtakes),
        cmocka_unit_test(small_values_of_a_round_go_in_one_write),
        cmocka_unit_test(the_end_comes_last),
        cmocka_unit_test(a_link_may_end_between_bins),
        cmocka_unit_test(all_arrive_whole_and_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
