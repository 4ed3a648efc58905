/* SPDX-License-Identifier: Apache-2.0
 *
 * Over TCP the kernel holds few unsent bytes, however much waits and however the peer reads, as
 * more urgent records cannot overtake them. The kernel itself is asked for their number.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <sys/ioctl.h>

#include "base/time.h"
#include "lib/links.h"
#include "lib/unit.h"

#ifndef SIOCOUTQNSD /* from Linux' own headers, which not every C library has */
#define SIOCOUTQNSD 0x894B
#endif

#define VALUE_COUNT (4 << 20) /* elements: 16 MiB */
#define N_VALUES 3            /* more than both ends' buffers hold */
#define PACE (50 << 20)       /* bytes per second */

/* The limit is 128 KiB (docs/design.md); the kernel stops after the segment that reaches it. */
#define UNSENT_LEAST (96 << 10) /* there is more to send */
#define UNSENT_MOST (256 << 10)

static struct peers_options options_of(const char *task)
{
    return (struct peers_options){
        .task = task, .producer = "test", .no_key = true, .no_shared_memory = true};
}

struct taken {
    struct link *link;
    int n;
};

static void taker_opened(void *context, struct link *link)
{
    ((struct taken *)context)->link = link;
}

static void taker_record(void *context, struct link *link, struct record *record)
{
    (void)link, (void)record;
    ((struct taken *)context)->n++;
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

/* Two ends in this process, each of which runs when the test says so. */
struct pair {
    struct end client;
    struct loop *loop; /* the taker's */
    struct peers *peers;
    struct taken taken;
    struct address at;
};

static void pair_open(struct pair *p)
{
    struct error err = ERROR_INIT;
    struct peers_options options = options_of("ps:0");
    struct peers_handler handler = {
        .link = {&p->taken, taker_opened, taker_record, taker_closed, NULL}};
    memset(p, 0, sizeof *p);
    p->loop = loop_new(&err);
    p->peers = peers_new(p->loop, &options, &handler, &err);
    assert_non_null(p->peers);
    must(peers_listen(p->peers, "127.0.0.1:0", &p->at, &err), &err);
    options.task = "worker:0";
    end_start(&p->client, &options);
    must(peers_connect(p->client.peers, "ps:0", p->at.text, 10, &err), &err);
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
}

/* Returns a link's socket at the dialing or at the listening end, found by its port. */
static int socket_of(const struct pair *p, bool dialed)
{
    const struct sockaddr_in *at = (const struct sockaddr_in *)&p->at.socket;
    DIR *folder = opendir("/proc/self/fd");
    int found = -1;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) && found < 0;) {
        struct sockaddr_in ends[2]; /* the peer's; our own */
        socklen_t lengths[2] = {sizeof ends[0], sizeof ends[1]};
        int fd = atoi(entry->d_name);
        if (!getpeername(fd, (struct sockaddr *)&ends[0], &lengths[0]) &&
            !getsockname(fd, (struct sockaddr *)&ends[1], &lengths[1]) &&
            ends[0].sin_family == AF_INET && ends[!dialed].sin_port == at->sin_port)
            found = fd;
    }
    closedir(folder);
    assert_true(found >= 0);
    return found;
}

static int unsent_bytes(int fd)
{
    int bytes = -1;
    assert_int_equal(ioctl(fd, SIOCOUTQNSD, &bytes), 0);
    return bytes;
}

static void send_values(struct link *link)
{
    struct error err = ERROR_INIT;
    struct shape shape = shape_vector(VALUE_COUNT);
    struct named_tensor value = {.name = "x"};
    make_tensor(&value.tensor, FLOAT32, &shape);
    for (int i = 0; i < N_VALUES; i++) {
        link_begin(link, RECORD_VALUE, 0);
        must(link_send_value(link, i, &value, 1, &err), &err);
    }
    tensor_release(&value.tensor);
}

/* Runs the sending end, as far as the kernel takes its bytes; the other end does not read. */
static void fill(struct loop *loop, const struct link *link, int fd)
{
    int most = 0;
    for (int i = 0; i < 50; i++) {
        loop_run_until(loop, never, NULL, 0.002);
        int unsent = unsent_bytes(fd);
        most = unsent > most ? unsent : most;
    }
    assert_true(link_waiting(link) > VALUE_COUNT * sizeof(float));
    assert_in_range(most, UNSENT_LEAST, UNSENT_MOST);
}

static void few_bytes_are_unsent(bool dialed)
{
    struct pair p;
    unsigned pace = PACE;
    int most = 0, n_full = 0, n = 0;
    pair_open(&p);
    struct link *link = dialed ? p.client.link : p.taken.link;
    int fd = socket_of(&p, dialed);
    /* as over a slow wire; the peer now reads */
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &pace, sizeof pace), 0);
    send_values(link);
    fill(dialed ? p.client.loop : p.loop, link, fd);
    double end = time_now() + 60;
    for (; p.taken.n + p.client.n_records < N_VALUES && time_now() < end; n++) {
        loop_run_until(p.loop, never, NULL, 0);
        loop_run_until(p.client.loop, never, NULL, 0);
        int unsent = unsent_bytes(fd);
        most = unsent > most ? unsent : most;
        n_full += unsent >= UNSENT_LEAST;
    }
    assert_int_equal(dialed ? p.taken.n : p.client.n_records, N_VALUES);
    assert_in_range(most, UNSENT_LEAST, UNSENT_MOST);
    print_message("# at most %d bytes unsent; %d of %d times nearly so many\n", most, n_full, n);
    assert_true(n_full > n / 2);
    pair_close(&p);
}

static void by_who_dials(void **state)
{
    (void)state;
    few_bytes_are_unsent(true);
}

static void by_who_listens(void **state)
{
    (void)state;
    few_bytes_are_unsent(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_who_dials),
        cmocka_unit_test(by_who_listens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
