/* SPDX-License-Identifier: Apache-2.0
 *
 * What links cost beside the sockets under them: round trips of one byte, of records without and
 * with a tensor of 4 bytes, and a stream of 100 MB, each against a raw socket that waits the same
 * way, in the same run. usage: link [SECONDS per figure]
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "transport/peers.h"
#include "transport/peers_private.h"

#define BIG_BYTES ((size_t)100 << 20)
#define SPIN_SECONDS 50e-6

static double budget = 0.5;

enum kind { KIND_UNIX, KIND_TCP, KIND_TLS, KIND_SHARED, N_KINDS };
static const char *const kind_names[] = {"unix", "tcp", "tls", "shared"};

/* ---- raw sockets ---- */

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void make_pair(enum kind kind, int pair[2])
{
    struct address at;
    struct error err = ERROR_INIT;
    if (kind != KIND_TCP && kind != KIND_TLS) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
            die("socketpair");
        address_of_socket(&at, pair[0], false);
        socket_tune(pair[0], &at);
        socket_tune(pair[1], &at);
        return;
    }
    address_parse(&at, "127.0.0.1:0", NULL, &err);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    socket_tune(listener, &at);
    if (bind(listener, (struct sockaddr *)&at.socket, at.length) || listen(listener, 1))
        die("listen");
    address_of_socket(&at, listener, false);
    pair[0] = socket(AF_INET, SOCK_STREAM, 0);
    socket_tune(pair[0], &at);
    if (connect(pair[0], (struct sockaddr *)&at.socket, at.length))
        die("connect");
    pair[1] = accept(listener, NULL, NULL);
    socket_tune(pair[1], &at);
    close(listener);
}

/* Waits as a loop does: asks epoll for a while, then sleeps. */
static void wait_readable(int epoll, double spin)
{
    struct epoll_event event;
    double end = loop_now() + spin;
    if (spin > 0)
        do
            if (epoll_wait(epoll, &event, 1, 0) == 1)
                return;
        while (loop_now() < end);
    while (epoll_wait(epoll, &event, 1, -1) < 0)
        ;
}

static int watch(int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    return epoll;
}

static void raw_echo(int fd, double spin)
{
    char byte;
    int epoll = watch(fd);
    for (;;) {
        wait_readable(epoll, spin);
        if (read(fd, &byte, 1) != 1 || write(fd, &byte, 1) != 1)
            _exit(0);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    return values[n / 2];
}

#define SAMPLES_MAX 200000
static double samples[SAMPLES_MAX];

static double raw_round_trip(enum kind kind, double spin)
{
    int pair[2], n = 0;
    char byte = 1;
    make_pair(kind, pair);
    pid_t child = fork();
    if (!child) {
        close(pair[0]);
        raw_echo(pair[1], spin);
    }
    close(pair[1]);
    int epoll = watch(pair[0]);
    for (double end = loop_now() + budget; loop_now() < end && n < SAMPLES_MAX; n++) {
        double start = loop_now();
        if (write(pair[0], &byte, 1) != 1)
            die("write");
        wait_readable(epoll, spin);
        if (read(pair[0], &byte, 1) != 1)
            die("read");
        samples[n] = loop_now() - start;
    }
    close(epoll);
    close(pair[0]);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return median(samples, n);
}

/* Reads 100 MB into one buffer and answers with a byte. */
static void raw_sink(int fd, size_t block)
{
    char *buffer = mem_try(BIG_BYTES), byte = 1;
    memset(buffer, 1, BIG_BYTES);
    for (;;) {
        for (size_t done = 0; done < BIG_BYTES;) {
            ssize_t n =
                read(fd, buffer + done, BIG_BYTES - done < block ? BIG_BYTES - done : block);
            if (n <= 0)
                _exit(0);
            done += (size_t)n;
        }
        if (write(fd, &byte, 1) != 1)
            _exit(0);
    }
}

static double raw_stream(enum kind kind)
{
    int pair[2], n = 0;
    bool local = kind != KIND_TCP && kind != KIND_TLS;
    size_t block = local ? 1 << 20 : 256 << 10;
    char *buffer = mem_try(BIG_BYTES), byte;
    memset(buffer, 1, BIG_BYTES);
    make_pair(kind, pair);
    pid_t child = fork();
    if (!child) {
        close(pair[0]);
        raw_sink(pair[1], local ? 1 << 20 : 64 << 10);
    }
    close(pair[1]);
    for (double end = loop_now() + budget; loop_now() < end || n < 5; n++) {
        double start = loop_now();
        for (size_t done = 0; done < BIG_BYTES;) {
            ssize_t wrote =
                write(pair[0], buffer + done, BIG_BYTES - done < block ? BIG_BYTES - done : block);
            if (wrote < 0)
                die("write");
            done += (size_t)wrote;
        }
        if (read(pair[0], &byte, 1) != 1)
            die("read");
        samples[n] = loop_now() - start;
    }
    close(pair[0]);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    mem_free(buffer);
    return median(samples, n);
}

/* ---- links ---- */

struct bench_end {
    struct link *link;
    int64_t got;
    bool echoes;
};

static void opened(void *context, struct link *link)
{
    ((struct bench_end *)context)->link = link;
}

static void closed(void *context, struct link *link, const struct error *why)
{
    (void)link, (void)why;
    ((struct bench_end *)context)->link = NULL;
}

static void send_record(struct link *link, enum record_kind kind,
                        const struct named_tensor *tensors, int n)
{
    struct error err = ERROR_INIT;
    msgpack_packer *packer = link_begin(link, kind, 3);
    pack_key(packer, "step");
    msgpack_pack_int64(packer, 388);
    pack_key(packer, "session");
    msgpack_pack_uint64(packer, 0x123456789abcdef);
    pack_key(packer, "key");
    pack_text(packer, "hidden/W/read:0");
    if (link_send(link, tensors, n, &err)) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
}

/* Small tensors come back, large ones are acknowledged. */
static void record(void *context, struct link *link, struct record *record)
{
    struct bench_end *end = context;
    bool small = !record->n_tensors || tensor_bytes(&record->tensors[0].tensor) < 64;
    end->got++;
    if (end->echoes)
        send_record(link, RECORD_REPLY, record->tensors, small ? record->n_tensors : 0);
}

static struct peers *make_end(struct bench_end *end, enum kind kind, double spin,
                              const char *folder, bool server)
{
    struct error err = ERROR_INIT;
    char key[128];
    snprintf(key, sizeof key, "%s/key", folder);
    struct loop *loop = loop_new(&err);
    loop_set_polling(loop, spin * 1e6);
    struct peers_options options = {.task = server ? "ps:0" : "worker:0",
                                    .producer = "bench",
                                    .folder = folder,
                                    .key_file = kind == KIND_TLS ? key : NULL,
                                    .no_key = kind != KIND_TLS,
                                    .no_shared_memory = kind != KIND_SHARED};
    struct peers_handler handler = {{end, opened, record, closed}, NULL, NULL};
    struct peers *peers = loop ? peers_new(loop, &options, &handler, &err) : NULL;
    if (!peers) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    return peers;
}

static pid_t fork_server(enum kind kind, double spin, const char *folder, char text[300])
{
    int ready[2];
    if (pipe(ready))
        die("pipe");
    pid_t child = fork();
    if (child) {
        close(ready[1]);
        if (read(ready[0], text, 300) != 300)
            exit(1);
        close(ready[0]);
        return child;
    }
    struct bench_end end = {.echoes = true};
    struct error err = ERROR_INIT;
    struct address at;
    struct peers *peers = make_end(&end, kind, spin, folder, true);
    bool local = kind == KIND_UNIX || kind == KIND_SHARED;
    if (peers_listen(peers, local ? "unix:s" : "127.0.0.1:0", &at, &err)) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    if (write(ready[1], at.text, 300) != 300)
        exit(1);
    exit(loop_run(peers_loop(peers), &err));
}

struct goal {
    struct bench_end *end;
    int64_t wanted;
};

static bool reached(void *context)
{
    struct goal *goal = context;
    return goal->end->got >= goal->wanted;
}

/* Median seconds from a record to its answer. */
static double link_round_trip(struct peers *peers, struct bench_end *end,
                              const struct named_tensor *tensor)
{
    struct goal goal = {end, end->got};
    int n = 0;
    for (double stop = loop_now() + budget; (loop_now() < stop || n < 5) && n < SAMPLES_MAX; n++) {
        double start = loop_now();
        send_record(end->link, RECORD_VALUE, tensor, tensor != NULL);
        goal.wanted++;
        if (!loop_run_until(peers_loop(peers), reached, &goal, 10)) {
            fprintf(stderr, "no answer\n");
            exit(1);
        }
        samples[n] = loop_now() - start;
    }
    return median(samples, n);
}

static void make_tensor(struct named_tensor *named, int64_t n)
{
    struct error err = ERROR_INIT;
    struct shape shape = shape_vector(n);
    named->name = "value";
    if (tensor_alloc(&named->tensor, FLOAT32, &shape, &err))
        exit(1);
    memset(named->tensor.data, 1, (size_t)n * 4);
}

static void bench(enum kind kind, double spin, const char *folder)
{
    char text[300];
    struct error err = ERROR_INIT;
    struct bench_end end = {0};
    struct named_tensor small, large;
    double raw = raw_round_trip(kind, spin);
    pid_t child = fork_server(kind, spin, folder, text);
    struct peers *peers = make_end(&end, kind, spin, folder, false);
    if (peers_connect(peers, "ps:0", text, 5, &err) || peers_wait(peers, &err)) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    make_tensor(&small, 1);
    make_tensor(&large, (int64_t)(BIG_BYTES / 4));
    double empty = link_round_trip(peers, &end, NULL);
    double four = link_round_trip(peers, &end, &small);
    printf("%-6s %-8s %8.1f %8.1f %6.2f %8.1f %6.2f", kind_names[kind],
           spin > 0 ? "polling" : "sleeping", raw * 1e6, empty * 1e6, empty / raw, four * 1e6,
           four / raw);
    if (spin > 0) {
        double stream = raw_stream(kind), sent = link_round_trip(peers, &end, &large);
        printf(" %8.1f %8.1f %6.2f", stream * 1e3, sent * 1e3, sent / stream);
    }
    printf("\n");
    fflush(stdout);
    struct loop *loop = peers_loop(peers);
    peers_free(peers);
    loop_free(loop);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    unlink(text + 5);
    tensor_release(&small.tensor);
    tensor_release(&large.tensor);
}

static void write_key(const char *folder)
{
    char path[128], digits[64];
    snprintf(path, sizeof path, "%s/key", folder);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    memset(digits, '5', sizeof digits);
    if (fd < 0 || write(fd, digits, sizeof digits) != sizeof digits)
        die(path);
    close(fd);
}

int main(int n, char **arguments)
{
    char folder[] = "/tmp/tf-bench-XXXXXX", path[64];
    if (n > 1)
        budget = atof(arguments[1]);
    if (!mkdtemp(folder))
        die("mkdtemp");
    write_key(folder);
    printf("%-6s %-8s %8s %8s %6s %8s %6s %8s %8s %6s\n", "LINK", "WAITING", "RAW us", "RECORD",
           "RATIO", "4 BYTES", "RATIO", "RAW ms", "100 MB", "RATIO");
    for (int polling = 1; polling >= 0; polling--)
        for (int kind = 0; kind < N_KINDS; kind++)
            bench((enum kind)kind, polling ? SPIN_SECONDS : 0, folder);
    snprintf(path, sizeof path, "%s/key", folder);
    unlink(path);
    return rmdir(folder);
}
