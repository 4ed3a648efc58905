/* SPDX-License-Identifier: Apache-2.0
 *
 * A ring between a writing thread and a reading one: every byte arrives once, in order, in any
 * sizes; and invalid positions that a peer writes into the shared memory are noticed.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "lib/unit.h"
#include "transport/channel/ring.h"

#define SIZE ((size_t)1024)
#define TOTAL ((size_t)3 << 20)

static uint8_t byte_at(size_t at)
{
    return (uint8_t)(at * 2654435761u >> 13);
}

static struct ring_header *make_shared(void)
{
    struct ring_header *shared = aligned_alloc(64, ring_bytes(SIZE));
    memset(shared, 0, ring_bytes(SIZE));
    return shared;
}

static void *write_all(void *argument)
{
    struct ring ring = {.shared = argument, .size = SIZE};
    uint8_t bytes[700];
    uint64_t seed = 1;
    for (size_t at = 0; at < TOTAL;) {
        size_t n = unit_random(&seed) % sizeof bytes;
        n = n < TOTAL - at ? n : TOTAL - at;
        for (size_t i = 0; i < n; i++)
            bytes[i] = byte_at(at + i);
        bool wake = false;
        struct iovec vectors[2] = {{bytes, n / 3}, {bytes + n / 3, n - n / 3}};
        ssize_t put = ring_write(&ring, vectors, 2, &wake);
        if (put > 0)
            at += (size_t)put;
        else if (put < 0 && errno != EAGAIN)
            return "write failed";
    }
    return NULL;
}

static void test_two_threads(void **state)
{
    (void)state;
    struct ring_header *shared = make_shared();
    struct ring ring = {.shared = shared, .size = SIZE};
    pthread_t writer;
    uint8_t bytes[900];
    uint64_t seed = 2;
    assert_int_equal(pthread_create(&writer, NULL, write_all, shared), 0);
    for (size_t at = 0; at < TOTAL;) {
        bool wake = false;
        size_t n = 1 + unit_random(&seed) % (sizeof bytes - 1);
        struct iovec vectors[2] = {{bytes, n / 2}, {bytes + n / 2, n - n / 2}};
        ssize_t got = ring_read(&ring, vectors, 2, &wake);
        if (got < 0)
            assert_int_equal(errno, EAGAIN);
        for (ssize_t i = 0; i < got; i++)
            if (bytes[i] != byte_at(at + (size_t)i))
                fail_msg("byte %zu differs", at + (size_t)i);
        at += got > 0 ? (size_t)got : 0;
    }
    void *result;
    pthread_join(writer, &result);
    assert_null(result);
    free(shared);
}

static void test_wakes(void **state)
{
    (void)state;
    struct ring_header *shared = make_shared();
    struct ring in = {.shared = shared, .size = SIZE}, out = in;
    uint8_t bytes[SIZE] = {0};
    struct iovec one = {bytes, 1}, all = {bytes, SIZE};
    bool wake = false;
    assert_int_equal(ring_write(&out, &one, 1, &wake), 1);
    assert_false(wake); /* the reader is awake */
    assert_true(ring_reader_sleeps(&in, true));
    assert_int_equal(ring_read(&in, &all, 1, &wake), 1);
    assert_false(ring_reader_sleeps(&in, true));
    assert_int_equal(ring_write(&out, &one, 1, &wake), 1);
    assert_true(wake);
    wake = false;
    assert_int_equal(ring_write(&out, &all, 1, &wake), SIZE - 1);
    assert_false(wake); /* it was woken already */
    assert_int_equal(ring_write(&out, &one, 1, &wake), -1);
    assert_int_equal(errno, EAGAIN);
    assert_false(ring_writer_waits(&out));
    assert_int_equal(ring_read(&in, &one, 1, &wake), 1);
    assert_false(wake); /* a byte of room is not worth it */
    assert_int_equal(ring_read(&in, &all, 1, &wake), SIZE - 1);
    assert_true(wake);
    assert_true(ring_has_room(&out));
    free(shared);
}

#define LARGE ((size_t)1 << 20)

static void put(struct ring *ring, int byte, size_t n)
{
    static uint8_t bytes[LARGE];
    struct iovec vector = {memset(bytes, byte, n), n};
    bool wake = false;
    assert_int_equal(ring_write(ring, &vector, 1, &wake), n);
}

static void take(struct ring *ring, int byte, size_t n)
{
    static uint8_t bytes[LARGE];
    struct iovec vector = {memset(bytes, 0, n), n};
    bool wake = false;
    assert_int_equal(ring_read(ring, &vector, 1, &wake), n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(bytes[i], byte);
}

/* Only bytes on their way take memory, however many have come through. */
static void test_begins_again(void **state)
{
    (void)state;
    struct ring_header *shared = make_shared();
    struct ring in = {.shared = shared, .size = SIZE}, out = in;
    for (int i = 1; i < 100; i++) {
        put(&out, i, 60);
        put(&out, i, 40);
        take(&in, i, 100);
    }
    assert_int_equal(shared->data[99], 99);
    assert_int_equal(shared->data[100], 0);
    put(&out, 1, 100);
    take(&in, 1, 50);
    put(&out, 2, SIZE - 50); /* after the rest, and round the end */
    take(&in, 1, 50);
    take(&in, 2, SIZE - 50);
    put(&out, 3, SIZE);
    shared->origin = UINT64_MAX / 3; /* an invalid position also becomes a place in the ring */
    take(&in, 3, SIZE);
    free(shared);
}

static size_t resident(const struct ring *ring)
{
    unsigned char pages[512];
    size_t page = (size_t)getpagesize(), n = 0;
    assert_int_equal(mincore(ring->shared, ring_bytes(ring->size), pages), 0);
    for (size_t i = 0; i * page < ring_bytes(ring->size); i++)
        n += pages[i] & 1;
    return n * page;
}

/* An emulator of another machine may lack MADV_REMOVE, and still report success. */
static bool system_takes_back(const struct ring *ring)
{
    memset(ring->shared, 1, ring_bytes(ring->size));
    return !madvise(ring->shared, ring_bytes(ring->size), MADV_REMOVE) && !resident(ring);
}

/* After much data has passed, no pages are kept. */
static void test_gives_back(void **state)
{
    (void)state;
    void *memory =
        mmap(NULL, ring_bytes(LARGE), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct ring in = {.shared = memory, .size = LARGE}, out = in;
    if (!system_takes_back(&in))
        skip();
    put(&out, 1, LARGE);
    take(&in, 1, LARGE);
    assert_true(resident(&out) >= LARGE);
    put(&out, 2, 1);
    take(&in, 2, 1);
    assert_true(resident(&out) < LARGE / 4);
    munmap(memory, ring_bytes(LARGE));
}

static void test_nonsense(void **state)
{
    (void)state;
    struct ring_header *shared = make_shared();
    struct ring in = {.shared = shared, .size = SIZE}, out = in;
    uint8_t bytes[16] = {0};
    struct iovec vector = {bytes, sizeof bytes};
    bool wake = false;
    static const uint64_t positions[] = {SIZE + 1, UINT64_MAX, UINT64_MAX / 2, 1ull << 40};
    for (int i = 0; i < 4; i++) {
        shared->head = positions[i];
        assert_int_equal(ring_read(&in, &vector, 1, &wake), -1);
        assert_int_equal(errno, EBADMSG);
    }
    for (int i = 0; i < 3; i++) {
        shared->tail =
            positions[i] == UINT64_MAX ? 1 : positions[i]; /* ahead of what was written */
        assert_int_equal(ring_write(&out, &vector, 1, &wake), -1);
        assert_int_equal(errno, EBADMSG);
    }
    free(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_threads),  cmocka_unit_test(test_wakes),
        cmocka_unit_test(test_begins_again), cmocka_unit_test(test_gives_back),
        cmocka_unit_test(test_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
