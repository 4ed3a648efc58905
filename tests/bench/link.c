/* SPDX-License-Identifier: Apache-2.0
 *
 * What links cost beside the sockets under them: round trips of one byte, of records without and
 * with a tensor of 4 bytes, and a stream of 100 MB, each against a raw socket that waits the same
 * way, in the same run, in turns. Figures are the quarter of the samples that is below, as other
 * processes only ever add to them. Shared memory is set beside the Unix socket that it replaces.
 * usage: link [SECONDS per figure]
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

#define SAMPLES_MAX 400000
#define TURN 100 /* samples of one side before it is the other's turn */

struct samples {
    double values[SAMPLES_MAX];
    int n;
};

static double quarter(struct samples *samples)
{
    qsort(samples->values, (size_t)samples->n, sizeof(double), compare);
    return samples->values[samples->n / 4];
}

/* A raw connection to a process at the other end. */
struct raw {
    int fd, epoll;
    pid_t child;
    double spin;
    size_t block;
    char *buffer;
};

static void raw_trip(struct raw *raw)
{
    char byte = 1;
    if (write(raw->fd, &byte, 1) != 1)
        die("write");
    wait_readable(raw->epoll, raw->spin);
    if (read(raw->fd, &byte, 1) != 1)
        die("read");
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

static void raw_stream(struct raw *raw)
{
    char byte;
    for (size_t done = 0; done < BIG_BYTES;) {
        size_t left = BIG_BYTES - done;
        ssize_t n = write(raw->fd, raw->buffer + done, left < raw->block ? left : raw->block);
        if (n < 0)
            die("write");
        done += (size_t)n;
    }
    if (read(raw->fd, &byte, 1) != 1)
        die("read");
}

static void raw_open(struct raw *raw, enum kind kind, double spin, bool stream)
{
    int pair[2];
    bool local = kind == KIND_UNIX || kind == KIND_SHARED;
    *raw = (struct raw){.spin = spin, .block = local ? 1 << 20 : 256 << 10};
    make_pair(kind, pair);
    raw->child = fork();
    if (!raw->child) {
        close(pair[0]);
        if (stream)
            raw_sink(pair[1], local ? 1 << 20 : 64 << 10);
        raw_echo(pair[1], spin);
    }
    close(pair[1]);
    raw->fd = pair[0];
    raw->epoll = watch(raw->fd);
    raw->buffer = stream ? mem_try(BIG_BYTES) : NULL;
    if (stream)
        memset(raw->buffer, 1, BIG_BYTES);
}

static void raw_close(struct raw *raw)
{
    close(raw->epoll);
    close(raw->fd);
    kill(raw->child, SIGKILL);
    waitpid(raw->child, NULL, 0);
    mem_free(raw->buffer);
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
    spin_release(&loop->spin); /* the raw side polls whatever else runs, so links do here */
    loop->spin.loadavg = -1;
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

static void link_trip(struct peers *peers, struct bench_end *end, const struct named_tensor *tensor)
{
    struct goal goal = {end, end->got + 1};
    send_record(end->link, RECORD_VALUE, tensor, tensor != NULL);
    if (!loop_run_until(peers_loop(peers), reached, &goal, 10)) {
        fprintf(stderr, "no answer\n");
        exit(1);
    }
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

struct contest {
    enum kind kind;
    double spin;
    struct peers *peers;
    struct bench_end *end;
};

/* Seconds of the raw socket and of the link, in turns. */
static void compete(const struct contest *contest, const struct named_tensor *tensor, bool stream,
                    double result[2])
{
    static struct samples samples[2];
    struct raw raw;
    raw_open(&raw, contest->kind, contest->spin, stream);
    samples[0].n = samples[1].n = 0;
    int turn = stream ? 1 : TURN;
    for (double stop = loop_now() + 2 * budget; loop_now() < stop || samples[0].n < 5;) {
        for (int i = 0; i < 2 * turn && samples[1].n < SAMPLES_MAX; i++) {
            struct samples *mine = &samples[i >= turn];
            double start = loop_now();
            if (i >= turn)
                link_trip(contest->peers, contest->end, tensor);
            else if (stream)
                raw_stream(&raw);
            else
                raw_trip(&raw);
            mine->values[mine->n++] = loop_now() - start;
        }
    }
    raw_close(&raw);
    result[0] = quarter(&samples[0]);
    result[1] = quarter(&samples[1]);
}

static void report(const double result[2], double unit)
{
    printf(" %9.1f %9.1f %6.2f", result[0] * unit, result[1] * unit, result[1] / result[0]);
    fflush(stdout);
}

static void bench(enum kind kind, double spin, const char *folder)
{
    char text[300];
    double result[2];
    struct error err = ERROR_INIT;
    struct bench_end end = {0};
    struct named_tensor small, large;
    pid_t child = fork_server(kind, spin, folder, text);
    struct peers *peers = make_end(&end, kind, spin, folder, false);
    struct contest contest = {kind, spin, peers, &end};
    if (peers_connect(peers, "ps:0", text, 5, &err) || peers_wait(peers, &err)) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    make_tensor(&small, 1);
    make_tensor(&large, (int64_t)(BIG_BYTES / 4));
    printf("%-6s %-8s", kind_names[kind], spin > 0 ? "polling" : "sleeping");
    compete(&contest, NULL, false, result);
    report(result, 1e6);
    compete(&contest, &small, false, result);
    report(result, 1e6);
    compete(&contest, &large, true, result);
    report(result, 1e3);
    printf("\n");
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
    printf("%-6s %-8s %9s %9s %6s %9s %9s %6s %9s %9s %6s\n", "LINK", "WAITING", "BYTE us",
           "RECORD", "RATIO", "BYTE us", "4 BYTES", "RATIO", "RAW ms", "100 MB", "RATIO");
    for (int polling = 1; polling >= 0; polling--)
        for (int kind = 0; kind < N_KINDS; kind++)
            bench((enum kind)kind, polling ? SPIN_SECONDS : 0, folder);
    snprintf(path, sizeof path, "%s/key", folder);
    unlink(path);
    return rmdir(folder);
}
