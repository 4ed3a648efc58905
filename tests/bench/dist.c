/* SPDX-License-Identifier: Apache-2.0
 *
 * The cost of a step over processes: runs an entry of a cut graph as a worker would, for some
 * seconds, and prints the median, 10th and 90th percentile of a step in microseconds. It prints
 * "ready" first, and begins when its stdin ends, so that many begin at once.
 *
 * With `raw`, the lower bounds for the same kind of link: microseconds of the round trip of a byte
 * (polling or sleeping, whichever is faster on the machine at the moment), of a megabyte one way,
 * and of a pass over a megabyte of memory.
 *
 * usage: dist step PARTS CLUSTER TASK ENTRY SECONDS [KEYFILE] | dist raw shared|tcp SECONDS
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>

#include "base/time.h"
#include "graph/join.h"
#include "lib/raw_socket.h"
#include "ops/ops.h"
#include "transport/channel/ring.h"
#include "transport/session/worker.h"

#define SPIN_SECONDS 50e-6
#define RING_BYTES ((size_t)1 << 20)
#define MEGABYTES ((double)BIG_BYTES / 1e6)

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

static double quantile(struct times *times, int tenths)
{
    size_t n = times->seconds.n;
    qsort(times->seconds.items, n, sizeof(double), by_size);
    return 1e6 * times->seconds.items[n * (size_t)tenths / 10];
}

/* ---- raw ---- */

static double measure_raw(struct raw *raw, void (*once)(struct raw *raw), double seconds)
{
    struct times times = {0};
    once(raw);
    for (double end = time_now() + seconds; time_now() < end || times.seconds.n < 5;) {
        double start = time_now();
        once(raw);
        vec_push(&times.seconds, time_now() - start);
    }
    double median = quantile(&times, 5);
    vec_release(&times.seconds);
    return median;
}

static void move_all(struct ring *ring, char *buffer, bool writes)
{
    bool wake = false;
    for (size_t done = 0; done < BIG_BYTES;) {
        struct iovec part = {buffer + done, BIG_BYTES - done};
        ssize_t n = writes ? ring_write(ring, &part, 1, &wake) : ring_read(ring, &part, 1, &wake);
        if (n > 0)
            done += (size_t)n;
        else
            sched_yield();
    }
}

/* Sends 100 MB through a ring, whose reader is another process. */
static double measure_ring(double seconds)
{
    struct times times = {0};
    void *memory = mmap(NULL, ring_bytes(RING_BYTES), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char *buffer = mem_try(BIG_BYTES);
    if (memory == MAP_FAILED || !buffer)
        die("memory");
    struct ring ring = {.shared = memory, .size = RING_BYTES};
    memset(buffer, 1, BIG_BYTES);
    pid_t child = fork();
    while (!child)
        move_all(&ring, buffer, false);
    move_all(&ring, buffer, true);
    for (double end = time_now() + seconds; time_now() < end || times.seconds.n < 5;) {
        double start = time_now();
        move_all(&ring, buffer, true);
        vec_push(&times.seconds, time_now() - start);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    munmap(memory, ring_bytes(RING_BYTES));
    mem_free(buffer);
    double median = quantile(&times, 5);
    vec_release(&times.seconds);
    return median;
}

static void pass(struct raw *raw)
{
    memcpy(raw->buffer, raw->buffer + BIG_BYTES / 2, BIG_BYTES / 2);
}

static double measure_waits(enum raw_kind kind, double spin, double seconds)
{
    struct raw raw;
    raw_open(&raw, kind, spin, false);
    double trip = measure_raw(&raw, raw_trip, seconds);
    raw_close(&raw);
    return trip;
}

/* On busy cores polling takes longer: it keeps the other end from running. */
static double measure_trip(enum raw_kind kind, double seconds)
{
    double polling = measure_waits(kind, SPIN_SECONDS, seconds);
    double sleeping = measure_waits(kind, 0, seconds);
    return polling < sleeping ? polling : sleeping;
}

static void measure_link(bool shared, double seconds)
{
    enum raw_kind kind = shared ? KIND_SHARED : KIND_TCP;
    double trip = measure_trip(kind, seconds);
    struct raw raw;
    raw_open(&raw, kind, SPIN_SECONDS, true);
    double stream = shared ? measure_ring(seconds) : measure_raw(&raw, raw_stream, seconds);
    double memory = 2 * measure_raw(&raw, pass, seconds);
    raw_close(&raw);
    printf("%.2f %.2f %.2f\n", trip, stream / MEGABYTES, memory / MEGABYTES);
}

/* ---- steps ---- */

static void step(struct driver *driver)
{
    struct error err = ERROR_INIT;
    bool more;
    if (driver_next_feeds(driver, &more, &err) || driver_run_step(driver, &err))
        fail(&err);
}

static void measure(struct worker *worker, struct driver *driver, double seconds)
{
    struct times times = {0};
    struct error err = ERROR_INIT;
    const struct worker_origin origin = {.seen = -1};
    int64_t counted;
    if (worker_start(worker, driver, &origin, &counted, &err))
        fail(&err);
    for (int i = 0; i < 3; i++)
        step(driver);
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    for (double end = time_now() + seconds; time_now() < end || times.seconds.n < 5;) {
        double start = time_now();
        step(driver);
        vec_push(&times.seconds, time_now() - start);
    }
    printf("%.1f %.1f %.1f\n", quantile(&times, 5), quantile(&times, 1), quantile(&times, 9));
    vec_release(&times.seconds);
}

static void run(char **arguments, const char *key_file)
{
    struct stream_graph joined = {0};
    struct driver driver = {0};
    struct worker worker;
    struct error err = ERROR_INIT;
    int fd = open(arguments[0], O_RDONLY | O_CLOEXEC);
    struct stream_reader *reader = stream_reader_new(fd, arguments[0]);
    if (stream_graph_read(reader, ops_registry(), &joined, &err))
        fail(&err);
    stream_reader_free(reader);
    close(fd);
    driver_init(&driver, joined.graph, arguments[0]);
    if (request_run(&driver.request, arguments[3], &err) || driver_ready(&driver, &err))
        fail(&err);
    struct worker_options options = {.member = {.cluster_path = arguments[1],
                                                .task = arguments[2],
                                                .producer = "dist",
                                                .key_file = key_file,
                                                .no_key = !key_file,
                                                .timeout = 120},
                                     .graph = joined.graph,
                                     .plan = {.kernels = ops_kernels(), .threads = 1},
                                     .device = {.threads = 1}};
    if (worker_open(&worker, &options, &err))
        fail(&err);
    worker_bind_driver(&worker, &driver);
    measure(&worker, &driver, atof(arguments[4]));
    worker_close(&worker);
    driver_release(&driver);
    stream_graph_release(&joined);
}

int main(int n, char **arguments)
{
    if (n == 4 && !strcmp(arguments[1], "raw"))
        measure_link(!strcmp(arguments[2], "shared"), atof(arguments[3]));
    else if ((n == 7 || n == 8) && !strcmp(arguments[1], "step"))
        run(arguments + 2, n == 8 ? arguments[7] : NULL);
    else
        return 64;
    return 0;
}
