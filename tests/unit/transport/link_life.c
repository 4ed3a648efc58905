/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of links: load in both directions, threads that send at once, peers that leave, die,
 * freeze or come back.
 */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/time.h"
#include "lib/links.h"
#include "transport/link/link_private.h"

#define LEASE 2.0       /* longer than a busy machine suspends a thread */
#define SHORT_LEASE 0.6 /* where the peer is really dead */

static struct peers_options options_of(const char *task)
{
    return (struct peers_options){.task = task, .producer = "test", .no_key = true, .lease = LEASE};
}

static struct peers_options short_options_of(const char *task)
{
    struct peers_options options = options_of(task);
    options.lease = SHORT_LEASE;
    return options;
}

static void make_float32(struct named_tensor *named, int64_t n)
{
    struct error err = ERROR_INIT;
    struct shape shape = shape_vector(n);
    named->name = "x";
    must(tensor_alloc(&named->tensor, FLOAT32, &shape, &err), &err);
    for (int64_t i = 0; i < n; i++)
        ((uint32_t *)named->tensor.data)[i] = (uint32_t)i * 2654435761u;
}

static void test_many_small(void **state)
{
    (void)state;
    struct end server, client;
    end_serve(&server, options_of("ps:0"), NULL);
    struct peers_options options = options_of("worker:0");
    end_start(&client, &options);
    end_connect(&client, &server, "ps:0");
    for (int i = 0; i < 10000; i++)
        end_request(&client, i, NULL, 0); /* ahead of any answer */
    assert_true(end_pump(&client, end_has_records, 10000, 20));
    assert_int_equal(client.last_id, 9999);
    struct link_stats stats = link_stats(client.link);
    assert_true(stats.records_out >= 10001 && stats.records_in >= 10001);
    assert_int_equal(link_waiting(client.link), 0);
    end_stop(&client);
    end_stop(&server);
    assert_true(server.n_records == 10000);
}

struct sender {
    struct end *end;
    pthread_t thread;
    int first, n;
};

static void *send_many(void *argument)
{
    struct sender *sender = argument;
    struct named_tensor x;
    make_float32(&x, 20000);
    for (int i = 0; i < sender->n; i++)
        end_request(sender->end, sender->first + i, i % 10 ? NULL : &x, i % 10 == 0);
    tensor_release(&x.tensor);
    return NULL;
}

static void test_threads_send(void **state)
{
    (void)state;
    struct end server, client;
    struct sender senders[3];
    struct peers_options options = options_of("worker:0");
    end_serve(&server, options_of("ps:0"), NULL);
    end_start(&client, &options);
    end_connect(&client, &server, "ps:0");
    for (int i = 0; i < 3; i++) {
        senders[i] = (struct sender){.end = &client, .first = i * 1000, .n = 300};
        assert_int_equal(pthread_create(&senders[i].thread, NULL, send_many, &senders[i]), 0);
    }
    assert_true(end_pump(&client, end_has_records, 900, 20));
    for (int i = 0; i < 3; i++)
        pthread_join(senders[i].thread, NULL);
    assert_int_equal(client.n_closed, 0);
    end_stop(&client);
    end_stop(&server);
}

/* An orderly end delivers everything sent before it. */
static void test_orderly_end(void **state)
{
    (void)state;
    struct end server, client;
    struct named_tensor x;
    struct error err = ERROR_INIT;
    struct peers_options options = options_of("worker:0");
    make_float32(&x, 5 << 20);
    end_serve(&server, options_of("ps:0"), NULL);
    end_start(&client, &options);
    end_connect(&client, &server, "ps:0");
    struct link *link = client.link;
    link_retain(link);
    end_request(&client, 1, &x, 1);
    end_request(&client, 2, NULL, 0);
    link_close(link, NULL);
    assert_true(end_pump(&client, end_has_closed, 1, 5));
    assert_int_equal(client.why.code, 0);
    link_begin(link, RECORD_PING, 0);
    assert_int_equal(link_send(link, NULL, 0, &err), ERR_UNAVAILABLE);
    link_release(link);
    end_stop(&client);
    end_stop(&server);
    assert_int_equal(server.n_records, 2);
    assert_int_equal(server.last_id, 2);
    assert_int_equal(server.why.code, 0);
    tensor_release(&x.tensor);
}

static void test_reason_travels(void **state)
{
    (void)state;
    struct end server, client;
    struct error why = ERROR_INIT;
    struct peers_options options = options_of("worker:0");
    options.incarnation = 7;
    end_serve(&server, options_of("ps:0"), "127.0.0.1:0");
    end_start(&client, &options);
    end_connect(&client, &server, "ps:0");
    error_set(&why, ERR_DATA, "node 'loss': NaN");
    link_close(client.link, &why);
    assert_true(end_pump(&client, end_has_closed, 1, 5));
    assert_int_equal(client.why.code, ERR_DATA);
    assert_string_equal(client.why.text, "node 'loss': NaN");
    end_stop(&client);
    end_wait_closed(&server);
    end_stop(&server);
    assert_int_equal(server.why.code, ERR_DATA);
    assert_int_equal(strncmp(server.why.text, "worker:0 at 127.0.0.1:", 22), 0);
    assert_non_null(strstr(server.why.text, ", incarnation 7: node 'loss': NaN"));
}

/* Both ends close a link, and the peer's end is read before the loop reaches ours: no loop runs. */
static void test_first_reason_counts(void **state)
{
    (void)state;
    struct end server, client;
    struct error why = ERROR_INIT;
    struct peers_options options = options_of("worker:0");
    end_serve(&server, options_of("ps:0"), NULL);
    end_start(&client, &options);
    end_connect(&client, &server, "ps:0");
    struct link *link = client.link;
    link_retain(link);
    end_request(&client, 1, NULL, 0);
    while (!atomic_load(&server.n_records))
        usleep(1000);
    error_set(&why, ERR_DATA, "node 'loss': NaN");
    link_close(link, &why);
    link_close(server.link, NULL);
    for (int i = 0; i < 2000 && !client.n_closed; i++) {
        usleep(1000);
        link_can_read(link);
    }
    assert_int_equal(client.n_closed, 1);
    assert_int_equal(client.why.code, ERR_DATA);
    assert_string_equal(client.why.text, "node 'loss': NaN");
    link_release(link);
    end_stop(&client);
    end_stop(&server);
}

/* Runs in a process of its own: a failure ends the process, as later tests are not its own. */
static _Noreturn void serve_for_ever(const char *address, int ready)
{
    struct error err = ERROR_INIT;
    struct peers_options options = short_options_of("ps:0");
    struct end server;
    if (end_try_start(&server, &options, &err) ||
        peers_listen(server.peers, address, &server.at, &err) ||
        write(ready, &server.at, sizeof server.at) < 0 || loop_run(server.loop, &err))
        fprintf(stderr, "%s\n", err.text);
    _exit(1);
}

/* Starts a peer in a process of its own, which reports when it listens. */
/* descriptors: how many it may have open; 0: as many as the test itself. */
static pid_t fork_server(const char *address, struct address *at, rlim_t descriptors)
{
    struct rlimit limit = {descriptors, descriptors};
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        if (descriptors && setrlimit(RLIMIT_NOFILE, &limit))
            _exit(1);
        serve_for_ever(address, ready[1]);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], at, sizeof *at), (ssize_t)sizeof *at);
    close(ready[0]);
    return child;
}

/* Connects to the peer, sends it the signal, and returns how long the link took to end. */
static double notice(const char *address, int number, struct error *why)
{
    struct end client, server = {0};
    struct peers_options options = short_options_of("worker:0");
    pid_t child = fork_server(address, &server.at, 0);
    end_start(&client, &options);
    end_connect(&client, &server, "ps:0");
    end_pump(&client, end_has_closed, 1, 0.05);
    assert_int_equal(client.n_closed, 0);
    double start = time_now();
    kill(child, number);
    assert_true(end_pump(&client, end_has_closed, 1, 5));
    double seconds = time_now() - start;
    *why = client.why;
    end_stop(&client);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(why->code, ERR_UNAVAILABLE);
    assert_int_equal(strncmp(why->text, "ps:0 at ", 8), 0);
    assert_int_equal(strncmp(why->text + 8, address, strlen(address) - 1), 0);
    assert_non_null(strstr(why->text, ", incarnation "));
    return seconds;
}

/* The link ends in time, in one of three attempts: the machine may have been busy. */
static void notice_in_time(const char *address, int number, double most, const char *text)
{
    struct error why;
    double seconds = most;
    for (int i = 0; i < 3 && seconds >= most; i++) {
        seconds = notice(address, number, &why);
        assert_non_null(strstr(why.text, text));
        if (!strncmp(address, "unix:", 5))
            unlink(address + 5);
    }
    assert_true(seconds < most);
}

/* Over TCP, and through shared memory beside a Unix socket. */
static void notice_both(int number, double most, const char *text)
{
    char folder[64], address[128];
    notice_in_time("127.0.0.1:0", number, most, text);
    end_folder(folder);
    snprintf(address, sizeof address, "unix:%s/s", folder);
    notice_in_time(address, number, most, text);
    assert_int_equal(rmdir(folder), 0);
}

static void test_peer_is_killed(void **state)
{
    (void)state;
    notice_both(SIGKILL, 0.2, ": connection ");
}

static void test_peer_freezes(void **state)
{
    (void)state;
    notice_both(SIGSTOP, SHORT_LEASE * 1.05, "silent for 0.6 s");
}

/* A process that does not run its loop for several leases is alive: its heartbeat says so. */
static void test_busy_is_not_dead(void **state)
{
    (void)state;
    struct end server, client;
    struct peers_options options = options_of("worker:0");
    end_serve(&server, options_of("ps:0"), NULL);
    end_start(&client, &options);
    end_connect(&client, &server, "ps:0");
    usleep((useconds_t)(LEASE * 2.5e6));
    end_request(&client, 1, NULL, 0);
    assert_true(end_pump(&client, end_has_records, 1, 5));
    assert_int_equal(client.n_closed, 0);
    end_stop(&client);
    end_stop(&server);
    assert_int_equal(server.n_opened, 1);
}

static void stand_still(void *argument)
{
    (void)argument;
    usleep((useconds_t)(LEASE * 2.5e6));
}

static bool end_hears_stillness(void *context)
{
    const struct end *end = ((struct end_count *)context)->end;
    return end->n_closed || link_stillness(end->link) >= LEASE;
}

/* A loop that stalls reports it, and also that it goes on again. */
static void test_stuck_is_not_dead(void **state)
{
    (void)state;
    struct end server, client;
    struct peers_options options = options_of("worker:0");
    end_serve(&server, options_of("ps:0"), NULL);
    end_start(&client, &options);
    end_connect(&client, &server, "ps:0");
    end_request(&client, 1, NULL, 0);
    assert_true(end_pump(&client, end_has_records, 1, 5)); /* the other side has it open, too */
    loop_post(server.loop, stand_still, NULL);
    assert_true(end_pump(&client, end_hears_stillness, 1, 5));
    assert_string_equal(client.why.text, "");
    end_request(&client, 2, NULL, 0);
    assert_true(end_pump(&client, end_has_records, 2, 5));
    assert_true(loop_longest_stillness(server.loop) >= LEASE * 2);
    end_pump(&client, end_has_closed, 1, LEASE);
    assert_int_equal(client.n_closed, 0);
    assert_float_equal(link_stillness(client.link), 0, 0);
    end_stop(&client);
    end_stop(&server);
}

static bool end_is_settled(void *context)
{
    const struct end *end = ((struct end_count *)context)->end;
    return end->n_opened || end->n_waiting || end->n_failed;
}

/* A client that comes when the server has no descriptor left is told so; once there is one it gets
 * its link. */
static void test_no_descriptor_left(void **state)
{
    enum { MOST = 24 };
    struct end clients[MOST], server = {0};
    struct error err = ERROR_INIT;
    int n = 0;
    (void)state;
    pid_t child = fork_server("127.0.0.1:0", &server.at, MOST);
    for (bool full = false; !full; n++) {
        char task[32];
        assert_true(n < MOST);
        snprintf(task, sizeof task, "worker:%d", n);
        struct peers_options options = options_of(task);
        end_start(&clients[n], &options);
        must(peers_connect(clients[n].peers, "ps:0", server.at.text, 30, &err), &err);
        assert_true(end_pump(&clients[n], end_is_settled, 1, 10));
        full = !clients[n].n_opened;
    }
    struct end *last = &clients[n - 1];
    assert_non_null(strstr(last->said, "has no file descriptor left: 24 may be open (ulimit -n)"));
    assert_true(n > 2);
    end_stop(&clients[0]);
    assert_int_equal(peers_wait(last->peers, &err), 0);
    for (int i = 1; i < n; i++)
        end_stop(&clients[i]);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void connect_as(struct end *client, const struct end *server, const char *task,
                       uint64_t incarnation)
{
    struct peers_options options = options_of(task);
    options.incarnation = incarnation;
    end_start(client, &options);
    end_connect(client, server, "ps:0");
}

static void test_newer_incarnation(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct end server, first, second, zombie;
    struct peers_options options = options_of("worker:0");
    end_serve(&server, options_of("ps:0"), NULL);
    connect_as(&first, &server, "worker:0", 1);
    connect_as(&second, &server, "worker:0", 2);
    assert_true(end_pump(&first, end_has_closed, 1, 5));
    assert_int_equal(first.why.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(first.why.text, "replaced by incarnation 2"));
    options.incarnation = 1;
    end_start(&zombie, &options);
    must(peers_connect(zombie.peers, "ps:0", end_address(&server), 1, &err), &err);
    assert_int_equal(peers_wait(zombie.peers, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "incarnation 1 was replaced by incarnation 2"));
    end_request(&second, 5, NULL, 0);
    assert_true(end_pump(&second, end_has_records, 1, 5));
    struct link *found = peers_find(server.peers, "worker:0");
    assert_non_null(found);
    assert_int_equal(link_peer(found)->incarnation, 2);
    link_release(found);
    assert_null(peers_find(server.peers, "worker:1"));
    assert_int_equal(peers_refused(server.peers), 1);
    end_stop(&zombie);
    end_stop(&first);
    end_stop(&second);
    end_stop(&server);
}

/* At first no server listens: the dialer says what it waits for, and connects when one does. */
static void test_waiting(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct end server, client;
    struct peers_options options = options_of("worker:0");
    end_serve(&server, options_of("ps:0"), "127.0.0.1:0");
    struct address at = server.at;
    end_stop(&server);
    end_start(&client, &options);
    must(peers_connect(client.peers, "ps:0", at.text, 30, &err), &err);
    end_pump(&client, end_has_closed, 1, 1.8);
    assert_true(client.n_waiting >= 1);
    assert_int_equal(strncmp(client.said, "waiting for ps:0 at 127.0.0.1:", 30), 0);
    assert_non_null(strstr(client.said, ": connection refused, "));
    assert_non_null(strstr(client.said, " s left"));
    end_serve(&server, options_of("ps:0"), at.text);
    must(peers_wait(client.peers, &err), &err);
    assert_int_equal(client.n_opened, 1);
    end_stop(&client);
    end_stop(&server);
    end_start(&client, &options);
    must(peers_connect(client.peers, "ps:0", at.text, 0.3, &err), &err);
    assert_int_equal(peers_wait(client.peers, &err), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "connection refused, gave up after 0.3 s"));
    end_stop(&client);
}

static void posted(void *argument)
{
    (*(int *)argument)++;
}

static bool is_three(void *context)
{
    return *(int *)context == 3;
}

static void test_loop(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct loop *loop = loop_new(&err);
    int n = 0;
    for (int i = 0; i < 3; i++)
        loop_post(loop, posted, &n);
    assert_true(loop_run_until(loop, is_three, &n, 1));
    double start = time_now();
    n = 0;
    assert_false(loop_run_until(loop, is_three, &n, 0.05));
    /* libevent reads the coarse clock, which stands for up to 10 ms. */
    assert_true(time_now() - start >= 0.035);
    struct loop_event *timer = loop_timer_new(loop, posted, &n);
    n = 2;
    loop_timer_set(timer, 0.01);
    assert_true(loop_run_until(loop, is_three, &n, 1));
    loop_event_free(timer);
    loop_stop(loop);
    must(loop_run(loop, &err), &err);
    assert_false(loop_is_current(loop));
    loop_free(loop);
}

/* Polling that finds nothing becomes ever rarer, and resumes at once when it has paid off. */
static void test_busy_poll(void **state)
{
    (void)state;
    struct loop_busy_poll busy_poll = {0};
    int tried = 0;
    busy_poll_init(&busy_poll);
    busy_poll_release(&busy_poll);
    busy_poll.loadavg = -1;
    busy_poll.limit = 50e-6;
    for (int i = 0; i < 1000; i++) {
        if (busy_poll_is_worth(&busy_poll, i)) {
            tried++;
            busy_poll_ended(&busy_poll, false);
        }
    }
    assert_true(tried > 10 && tried < 30);
    while (!busy_poll_is_worth(&busy_poll, 1001))
        ;
    for (int i = 0; i < 100; i++) {
        busy_poll_ended(&busy_poll, true);
        assert_true(busy_poll_is_worth(&busy_poll, 1002));
    }
    busy_poll.limit = 0;
    assert_false(busy_poll_is_worth(&busy_poll, 1003));
}

/* A stop ends the current run only. */
static void test_stop(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct loop *loop = loop_new(&err);
    int n = 0;
    loop_stop(loop);
    double start = time_now();
    assert_false(loop_run_until(loop, is_three, &n, 5));
    assert_true(time_now() - start < 4);
    for (int i = 0; i < 3; i++)
        loop_post(loop, posted, &n);
    assert_true(loop_run_until(loop, is_three, &n, 5));
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_busy_poll),
        cmocka_unit_test(test_many_small),
        cmocka_unit_test(test_threads_send),
        cmocka_unit_test(test_orderly_end),
        cmocka_unit_test(test_reason_travels),
        cmocka_unit_test(test_first_reason_counts),
        cmocka_unit_test(test_peer_is_killed),
        cmocka_unit_test(test_peer_freezes),
        cmocka_unit_test(test_busy_is_not_dead),
        cmocka_unit_test(test_stuck_is_not_dead),
        cmocka_unit_test(test_no_descriptor_left),
        cmocka_unit_test(test_newer_incarnation),
        cmocka_unit_test(test_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
