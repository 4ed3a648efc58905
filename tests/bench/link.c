/* SPDX-License-Identifier: Apache-2.0
 *
 * The cost of links compared with the sockets under them: round trips of one byte, of records
 * without and with a tensor of 4 bytes, and a stream of 100 MB, each against a raw socket that
 * waits the same way, in the same run, in turns. Figures are the lower quartile of the samples, as
 * other processes only ever add to them. Shared memory is compared with the Unix socket that it
 * replaces.
 *
 * usage: link [SECONDS per figure]
 */
#include <fcntl.h>

#include "base/time.h"
#include "lib/raw_socket.h"
#include "transport/link/peers.h"

#define BUSY_POLL_SECONDS 50e-6

static double budget = 0.5;

static const char *const kind_names[] = {"unix", "tcp", "tls", "shared"};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

#define SAMPLES_MAX 400000
#define TURN 100 /* of one side in a row */

struct samples {
    double values[SAMPLES_MAX];
    int n;
};

static double quarter(struct samples *samples)
{
    qsort(samples->values, (size_t)samples->n, sizeof(double), compare);
    return samples->values[samples->n / 4];
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

static struct peers *make_end(struct bench_end *end, enum raw_kind kind, double busy_poll,
                              const char *folder, bool server)
{
    struct error err = ERROR_INIT;
    char key[128];
    snprintf(key, sizeof key, "%s/key", folder);
    struct loop *loop = loop_new(&err);
    loop->busy_poll.limit = busy_poll;
    busy_poll_release(
        &loop->busy_poll); /* the raw side polls whatever else runs, so links do here */
    loop->busy_poll.loadavg = -1;
    struct peers_options options = {.task = server ? "ps:0" : "worker:0",
                                    .producer = "bench",
                                    .folder = folder,
                                    .key_file = kind == KIND_TLS ? key : NULL,
                                    .no_key = kind != KIND_TLS,
                                    .no_shared_memory = kind != KIND_SHARED};
    struct peers_handler handler = {{end, opened, record, closed, NULL}, NULL};
    struct peers *peers = loop ? peers_new(loop, &options, &handler, &err) : NULL;
    if (!peers) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    return peers;
}

static pid_t fork_server(enum raw_kind kind, double busy_poll, const char *folder, char text[300])
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
    struct peers *peers = make_end(&end, kind, busy_poll, folder, true);
    bool local = kind == KIND_UNIX || kind == KIND_SHARED;
    if (peers_listen(peers, local ? "unix:s" : "127.0.0.1:0", &at, &err)) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    if (write(ready[1], at.text, 300) != 300)
        exit(1);
    exit(loop_run(peers->loop, &err));
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
    if (!loop_run_until(peers->loop, reached, &goal, 10)) {
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
    enum raw_kind kind;
    double busy_poll;
    struct peers *peers;
    struct bench_end *end;
};

/* Measures the seconds of the raw socket and of the link, in turns. */
static void compete(const struct contest *contest, const struct named_tensor *tensor, bool stream,
                    double result[2])
{
    static struct samples samples[2];
    struct raw raw;
    raw_open(&raw, contest->kind, contest->busy_poll, stream);
    samples[0].n = samples[1].n = 0;
    int turn = stream ? 1 : TURN;
    for (double stop = time_now() + 2 * budget; time_now() < stop || samples[0].n < 5;) {
        for (int i = 0; i < 2 * turn && samples[1].n < SAMPLES_MAX; i++) {
            struct samples *mine = &samples[i >= turn];
            double start = time_now();
            if (i >= turn)
                link_trip(contest->peers, contest->end, tensor);
            else if (stream)
                raw_stream(&raw);
            else
                raw_trip(&raw);
            mine->values[mine->n++] = time_now() - start;
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

static void unlink_in(const char *folder, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

static void bench(enum raw_kind kind, double busy_poll, const char *folder)
{
    char text[300];
    double result[2];
    struct error err = ERROR_INIT;
    struct bench_end end = {0};
    struct named_tensor small, large;
    pid_t child = fork_server(kind, busy_poll, folder, text);
    struct peers *peers = make_end(&end, kind, busy_poll, folder, false);
    struct contest contest = {kind, busy_poll, peers, &end};
    if (peers_connect(peers, "ps:0", text, 5, &err) || peers_wait(peers, &err)) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    make_tensor(&small, 1);
    make_tensor(&large, (int64_t)(BIG_BYTES / 4));
    printf("%-6s %-8s", kind_names[kind], busy_poll > 0 ? "polling" : "sleeping");
    compete(&contest, NULL, false, result);
    report(result, 1e6);
    compete(&contest, &small, false, result);
    report(result, 1e6);
    compete(&contest, &large, true, result);
    report(result, 1e3);
    printf("\n");
    struct loop *loop = peers->loop;
    peers_free(peers);
    loop_free(loop);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    unlink_in(folder, "s");
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
    char folder[] = "/tmp/tf-bench-XXXXXX";
    if (n > 1)
        budget = atof(arguments[1]);
    if (!mkdtemp(folder))
        die("mkdtemp");
    write_key(folder);
    printf("%-6s %-8s %9s %9s %6s %9s %9s %6s %9s %9s %6s\n", "LINK", "WAITING", "BYTE us",
           "RECORD", "RATIO", "BYTE us", "4 BYTES", "RATIO", "RAW ms", "100 MB", "RATIO");
    for (int polling = 1; polling >= 0; polling--)
        for (int kind = 0; kind < N_KINDS; kind++)
            bench((enum raw_kind)kind, polling ? BUSY_POLL_SECONDS : 0, folder);
    unlink_in(folder, "key");
    return rmdir(folder) ? 1 : 0;
}
