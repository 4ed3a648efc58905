/* SPDX-License-Identifier: Apache-2.0
 *
 * What a step over processes costs: runs an entry of a graph that was cut as a worker would, for so
 * many seconds, and prints the median, 10th and 90th percentile of a step in microseconds; and,
 * with
 * --floor, the same of a raw round trip of one byte over a socket, by processes that wait as ours
 * do. usage: dist -g PARTS -c CLUSTER ENTRY SECONDS | dist --floor unix|tcp SECONDS
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "graph/join.h"
#include "ops/ops.h"
#include "transport/worker.h"

#define SPIN_SECONDS 50e-6

static void fail(const struct error *err)
{
    fprintf(stderr, "dist: %s\n", err->text);
    exit(1);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct times {
    VEC(double) seconds;
};

static void report(struct times *times)
{
    size_t n = times->seconds.n;
    qsort(times->seconds.items, n, sizeof(double), by_size);
    printf("%.1f %.1f %.1f\n", 1e6 * times->seconds.items[n / 2],
           1e6 * times->seconds.items[n / 10], 1e6 * times->seconds.items[n * 9 / 10]);
    vec_release(&times->seconds);
}

/* ---- the floor ---- */

static void make_pair(bool tcp, int pair[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int one = 1;
    if (!tcp && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        return;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    pair[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&at, length) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&at, &length) ||
        connect(pair[0], (struct sockaddr *)&at, length))
        exit(1);
    pair[1] = accept(listener, NULL, NULL);
    close(listener);
    for (int i = 0; i < 2; i++)
        setsockopt(pair[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* Asks for the byte for as long as a loop of ours would, and sleeps then. */
static bool pass(int fd, bool sends)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    double end = loop_now() + SPIN_SECONDS;
    char byte = 1;
    if (sends)
        return send(fd, &byte, 1, MSG_NOSIGNAL) == 1;
    while (loop_now() < end) {
        ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);
        if (n >= 0)
            return n == 1;
    }
    poll(&wait, 1, -1);
    return recv(fd, &byte, 1, 0) == 1;
}

static void measure_floor(bool tcp, double seconds)
{
    struct times times = {0};
    int pair[2];
    make_pair(tcp, pair);
    pid_t child = fork();
    if (!child) {
        close(pair[0]);
        while (pass(pair[1], false) && pass(pair[1], true))
            ;
        _exit(0);
    }
    close(pair[1]);
    for (double begin = loop_now(), end = begin + seconds; loop_now() < end;) {
        double start = loop_now();
        if (!pass(pair[0], true) || !pass(pair[0], false))
            exit(1);
        vec_push(&times.seconds, loop_now() - start);
    }
    close(pair[0]);
    waitpid(child, NULL, 0);
    report(&times);
}

/* ---- steps ---- */

static void measure(struct worker *worker, struct driver *driver, double seconds)
{
    struct times times = {0};
    struct error err = ERROR_INIT;
    int64_t counted;
    bool more;
    if (worker_start(worker, driver, NULL, &counted, &err))
        fail(&err);
    for (int i = 0; i < 3; i++)
        if (driver_next_feeds(driver, &more, &err) || driver_run_step(driver, &err))
            fail(&err);
    for (double end = loop_now() + seconds; loop_now() < end || times.seconds.n < 10;) {
        double start = loop_now();
        if (driver_next_feeds(driver, &more, &err) || driver_run_step(driver, &err))
            fail(&err);
        vec_push(&times.seconds, loop_now() - start);
    }
    report(&times);
}

static void run(const char *parts, const char *cluster, const char *entry, double seconds)
{
    struct joined joined = {0};
    struct driver driver = {0};
    struct worker worker;
    struct error err = ERROR_INIT;
    int fd = open(parts, O_RDONLY | O_CLOEXEC);
    struct stream_reader *reader = stream_reader_new(fd, parts);
    if (joined_read(reader, ops_registry(), &joined, &err))
        fail(&err);
    stream_reader_free(reader);
    close(fd);
    driver_init(&driver, joined.graph, parts);
    if (request_run(&driver.request, entry, &err) || driver_ready(&driver, &err))
        fail(&err);
    struct worker_options options = {
        .member = {.cluster_path = cluster, .task = "worker:0", .producer = "dist", .no_key = true},
        .graph = joined.graph,
        .plan = {.kernels = ops_kernels(), .threads = 1},
        .device = {.threads = 1}};
    if (worker_open(&worker, &options, &err))
        fail(&err);
    worker_drive(&worker, &driver);
    measure(&worker, &driver, seconds);
    worker_close(&worker);
    driver_release(&driver);
    joined_release(&joined);
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "--floor"))
        measure_floor(!strcmp(argv[2], "tcp"), atof(argv[3]));
    else if (argc == 7 && !strcmp(argv[1], "-g") && !strcmp(argv[3], "-c"))
        run(argv[2], argv[4], argv[5], atof(argv[6]));
    else
        return 64;
    return 0;
}
