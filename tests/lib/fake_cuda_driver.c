/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's calls except those for memory: streams are lines of a scheduler.
 */
#include "lib/fake_cuda_driver.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "lib/cuda_emulator.h"

/* Errors of CUDA's, by its own numbers. */
enum { INVALID_RESOURCE = 400, NOT_READY = 600, IS_CAPTURED = 907 };

struct cuda_event {
    struct fake_card *card;
    struct test_event *latest; /* NULL: it was never recorded */
    bool timed;
};

/* ---- cards ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards who holds cards */
static struct test_scheduler machine;                    /* while a card has users */
static struct fake_card cards[FAKE_CARDS] = {{.scheduler = &machine},
                                             {.scheduler = &machine},
                                             {.scheduler = &machine},
                                             {.scheduler = &machine}};
_Static_assert(FAKE_CARDS == 4, "every card has the machine's scheduler");
static int n_used; /* of the cards */
static _Thread_local int current;
static _Thread_local struct error said; /* by the last call of the thread that failed */

static long number_from(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtol(text, NULL, 10) : otherwise;
}

/* NULL in a build without the emulator. */
#pragma weak cuda_emulator_seed
#pragma weak cuda_emulator_fault

/* Sets one seed for the order of enqueued work and for that of a kernel's blocks and threads. */
static void machine_start(void)
{
    machine = (struct test_scheduler){0};
    test_scheduler_init(&machine, 1);
    if (cuda_emulator_seed)
        cuda_emulator_seed(machine.random);
}

struct fake_card *fake_card_hold(int index)
{
    if (index < 0 || index >= FAKE_CARDS)
        return NULL;
    struct fake_card *card = &cards[index];
    pthread_mutex_lock(&lock);
    if (!card->users++) {
        *card = (struct fake_card){.scheduler = &machine, .users = 1};
        if (!n_used++)
            machine_start();
        const char *memory = getenv("TF_TEST_DEVICE_MEMORY");
        card->memory = memory ? strtoul(memory, NULL, 10) : (size_t)1 << 40;
        card->until_failure = number_from("TF_TEST_DEVICE_FAIL_CALL", -1);
    }
    pthread_mutex_unlock(&lock);
    return card;
}

void fake_card_drop(struct fake_card *card)
{
    pthread_mutex_lock(&lock);
    if (card && !--card->users && !--n_used)
        test_scheduler_release(&machine);
    pthread_mutex_unlock(&lock);
}

struct fake_card *fake_card_at(int index)
{
    return &cards[index];
}

struct fake_card *fake_current(void)
{
    return fake_card_at(current);
}

int fake_fail(struct fake_card *card, const char *text)
{
    test_fail(card->scheduler, "the fake driver: %s", text);
    return FAKE_FAILED;
}

int fake_spoilt(const struct error *err)
{
    said = *err;
    return FAKE_SPOILT;
}

int fake_enter(struct fake_card *card)
{
    struct test_scheduler *s = card->scheduler;
    pthread_mutex_lock(&s->lock);
    bool fails = card->until_failure > 0 && --card->until_failure == 0;
    int code = s->failure.code;
    pthread_mutex_unlock(&s->lock);
    return fails  ? fake_fail(card, "a call has failed, as it was asked to")
           : code ? FAKE_FAILED
                  : 0;
}

bool fake_lacks(const char *what)
{
    const char *text = getenv("TF_TEST_DEVICE_LACKS");
    return text && !strcmp(text, what);
}

int fake_load(const char *what, const char *use, struct error *err)
{
    return fake_lacks(what)
               ? error_set(err, ERR_UNAVAILABLE, "the fake library of %s is not there", use)
               : 0;
}

static int versions(int *driver, int *runtime)
{
    *runtime = 13000;
    *driver = fake_lacks("driver") ? 0 : fake_lacks("newer") ? 12040 : 13010;
    return 0;
}

static int device_count(int *count)
{
    *count = FAKE_CARDS;
    return fake_lacks("device") ? CUDA_NO_DEVICE : 0;
}

static int card_of(int device, struct cuda_card *card)
{
    *card = (struct cuda_card){cards[device].memory, 9, 0, !fake_lacks("pools")};
    return fake_enter(&cards[device]);
}

static int set_device(int device)
{
    current = device;
    return 0;
}

static int device_wait(void)
{
    struct fake_card *card = fake_current();
    struct test_scheduler *s = card->scheduler;
    test_capture_refuse(s, "the host waits");
    test_finish(s);
    return fake_enter(card);
}

static const char *error_text(int error)
{
    struct test_scheduler *s = fake_current()->scheduler;
    if (error == FAKE_SPOILT)
        return said.text;
    if (error == CUDA_NO_MEMORY)
        return "out of memory";
    if (error != FAKE_FAILED)
        return "an error of the caller's";
    const char *wrong = cuda_emulator_fault ? cuda_emulator_fault() : NULL;
    return s->failure.code || !wrong ? s->failure.text : wrong;
}

/* ---- streams ---- */

static int stream_new(struct cuda_stream **stream)
{
    struct fake_card *card = fake_current();
    struct test_scheduler *s = card->scheduler;
    int line = 0, code = fake_enter(card);
    if (code)
        return code;
    pthread_mutex_lock(&s->lock);
    while (line < TEST_LINES && s->lines[line].taken)
        line++;
    if (line < TEST_LINES)
        s->lines[line].taken = true;
    if (line < TEST_LINES && line >= s->n_lines)
        s->n_lines = line + 1;
    pthread_mutex_unlock(&s->lock);
    if (line == TEST_LINES)
        return fake_fail(card, "there are too many streams");
    *stream = mem_alloc(sizeof **stream);
    **stream = (struct cuda_stream){card, line};
    return 0;
}

static int stream_free(struct cuda_stream *stream)
{
    struct test_scheduler *s = stream->card->scheduler;
    struct test_line *line = &s->lines[stream->line];
    pthread_mutex_lock(&s->lock);
    while (line->first || line->busy)
        if (!test_do_some(s))
            pthread_cond_wait(&s->changed, &s->lock);
    line->taken = false;
    pthread_mutex_unlock(&s->lock);
    mem_free(stream);
    return 0;
}

/* The latest that the event stands for, held; NULL: none. */
static struct test_event *hold(struct cuda_event *event)
{
    struct test_scheduler *s = event->card->scheduler;
    pthread_mutex_lock(&s->lock);
    struct test_event *latest = event->latest;
    if (latest)
        atomic_fetch_add(&latest->holders, 1);
    pthread_mutex_unlock(&s->lock);
    return latest;
}

static int stream_wait(struct cuda_stream *stream, struct cuda_event *event)
{
    int code = fake_enter(stream->card);
    struct test_event *latest = hold(event);
    if (!code && latest)
        test_wait(stream->card->scheduler, stream->line, latest);
    test_event_free(latest);
    return code;
}

/* ---- events ---- */

static int event_new(bool timed, struct cuda_event **event)
{
    struct fake_card *card = fake_current();
    int code = fake_enter(card);
    if (code)
        return code;
    *event = mem_alloc(sizeof **event);
    **event = (struct cuda_event){.card = card, .timed = timed};
    return 0;
}

static int event_free(struct cuda_event *event)
{
    test_event_free(event->latest);
    mem_free(event);
    return 0;
}

static int event_record(struct cuda_event *event, struct cuda_stream *stream)
{
    struct test_scheduler *s = stream->card->scheduler;
    int code = fake_enter(stream->card);
    if (code)
        return code;
    struct test_event *latest = test_record(s, stream->line);
    pthread_mutex_lock(&s->lock);
    struct test_event *before = event->latest;
    event->latest = latest;
    pthread_mutex_unlock(&s->lock);
    test_event_free(before);
    return 0;
}

static int event_query(struct cuda_event *event)
{
    struct test_scheduler *s = event->card->scheduler;
    int code = fake_enter(event->card);
    struct test_event *latest = hold(event);
    if (!code && latest && latest->captured)
        code = IS_CAPTURED;
    if (!code && latest && !test_query(s, latest))
        code = NOT_READY;
    test_event_free(latest);
    return code;
}

static int event_wait(struct cuda_event *event)
{
    struct test_scheduler *s = event->card->scheduler;
    struct error err = ERROR_INIT;
    int code = fake_enter(event->card);
    struct test_event *latest = hold(event);
    test_capture_refuse(s, "the host waits");
    if (!code && latest && latest->captured)
        code = IS_CAPTURED;
    if (!code && latest && test_block(s, latest, &err))
        code = FAKE_FAILED;
    test_event_free(latest);
    return code;
}

static int event_elapsed(float *milliseconds, struct cuda_event *from, struct cuda_event *to)
{
    int code = fake_enter(from->card);
    if (!code && (!from->timed || !to->timed || !from->latest || !to->latest))
        code = INVALID_RESOURCE;
    if (!code)
        code = event_query(from) ? event_query(from) : event_query(to);
    if (!code)
        *milliseconds = (float)(test_time(to->card->scheduler, to->latest) -
                                test_time(from->card->scheduler, from->latest)) /
                        1e6F;
    return code;
}

/* ---- captured work ---- */

static int capture_begin(struct cuda_stream *stream)
{
    int code = fake_enter(stream->card);
    if (!code)
        test_capture_begin(stream->card->scheduler, stream->line);
    return code;
}

static int capture_end(struct cuda_stream *stream, struct cuda_graph **graph)
{
    struct test_graph *captured;
    struct error err = ERROR_INIT;
    int code = fake_enter(stream->card);
    if (test_capture_end(stream->card->scheduler, &captured, &err))
        code = code ? code : fake_spoilt(&err);
    else if (code)
        test_graph_free(captured);
    *graph = code ? NULL : (struct cuda_graph *)captured;
    return code;
}

static int graph_launch(struct cuda_graph *graph, struct cuda_stream *stream)
{
    struct error err = ERROR_INIT;
    int code = fake_enter(stream->card);
    if (!code &&
        test_launch(stream->card->scheduler, stream->line, (struct test_graph *)graph, &err))
        code = FAKE_FAILED;
    return code;
}

static int free_graph(struct cuda_graph *graph)
{
    test_graph_free((struct test_graph *)graph);
    return 0;
}

const struct cuda_driver fake_cuda_driver = {
    .versions = versions,
    .device_count = device_count,
    .card = card_of,
    .set_device = set_device,
    .device_wait = device_wait,
    .error_text = error_text,
    .memory_alloc = fake_memory_alloc,
    .memory_free = fake_memory_free,
    .memory_keep = fake_memory_keep,
    .memory_trim = fake_memory_keep,
    .host_alloc = fake_host_alloc,
    .host_free = fake_host_free,
    .host_register = fake_host_register,
    .host_unregister = fake_host_unregister,
    .stream_new = stream_new,
    .stream_free = stream_free,
    .stream_wait = stream_wait,
    .copy = fake_copy,
    .peer_can = fake_peer_can,
    .peer_enable = fake_peer_enable,
    .copy_peer = fake_copy_peer,
    .event_new = event_new,
    .event_free = event_free,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_elapsed = event_elapsed,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .graph_launch = graph_launch,
    .graph_free = free_graph,
};
