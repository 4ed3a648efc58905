/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits: when they end, and the lines that they print.
 */
#include "base/patience.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "lib/unit.h"

static struct heard {
    bool asked;
    int lines;
    char line[256];
} heard;

static void say(void *context, const char *line)
{
    struct heard *h = context;
    h->lines++;
    snprintf(h->line, sizeof h->line, "%s", line);
}

static bool asked(void *context)
{
    return ((struct heard *)context)->asked;
}

static int hear(void **state)
{
    (void)state;
    heard = (struct heard){.asked = false};
    patience_set_handler(&(struct patience_handler){say, asked, &heard});
    return 0;
}

/* Waits for news other than a line to print. */
static enum patience_news wait_for_news(struct patience *patience)
{
    enum patience_news news;
    while ((news = patience_look(patience)) <= PATIENCE_TELL) {
        if (news == PATIENCE_TELL)
            patience_tell(patience, "waiting for %s", "a friend");
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return news;
}

static void a_wait_ends_when_its_time_is_over(void **state)
{
    double began = time_now();
    struct patience patience = patience_begin(0.05, NULL);
    (void)state;
    assert_int_equal(wait_for_news(&patience), PATIENCE_OVER);
    assert_true(time_now() - began >= 0.05);
    assert_int_equal(heard.lines, 0);
}

static void one_of_no_time_is_over_at_once(void **state)
{
    struct patience patience = patience_begin(0, NULL);
    (void)state;
    assert_int_equal(patience_look(&patience), PATIENCE_OVER);
}

static void what_is_waited_for_is_said(void **state)
{
    struct patience patience = patience_begin(1.2, NULL);
    (void)state;
    assert_int_equal(wait_for_news(&patience), PATIENCE_OVER);
    assert_int_equal(heard.lines, 1);
    assert_string_equal(heard.line, "waiting for a friend, 0 s left");
    patience = patience_begin(-1, NULL);
    patience.tell_at = time_now();
    assert_int_equal(patience_look(&patience), PATIENCE_TELL);
    patience_tell(&patience, "waiting");
    assert_string_equal(heard.line, "waiting"); /* a wait without end states no time */
    assert_int_equal(patience_look(&patience), PATIENCE_WAIT);
}

static void a_process_that_is_asked_to_end_waits_no_more(void **state)
{
    struct patience patience = patience_begin(-1, NULL);
    (void)state;
    assert_int_equal(patience_look(&patience), PATIENCE_WAIT);
    heard.asked = true;
    assert_int_equal(patience_look(&patience), PATIENCE_ENDS);
}

/* A process that is asked to end may still wait a little, in order to end well. */
static void one_that_was_asked_before_waits_a_little(void **state)
{
    (void)state;
    heard.asked = true;
    struct patience patience = patience_begin(-1, NULL);
    assert_int_equal(patience_look(&patience), PATIENCE_WAIT);
    assert_true(patience.until < time_now() + 60);
    assert_true(patience_begin(600, NULL).seconds == patience.seconds); /* what an error says */
    assert_true(patience_begin(1, NULL).seconds == 1);
}

static void who_wanted_it_ends_it(void **state)
{
    static atomic_bool cancelled;
    struct patience patience = patience_begin(-1, &cancelled);
    (void)state;
    assert_int_equal(patience_look(&patience), PATIENCE_WAIT);
    atomic_store(&cancelled, true);
    assert_int_equal(patience_look(&patience), PATIENCE_ENDS);
}

static void a_lock_is_taken_or_waited_for(void **state)
{
    char path[] = "/tmp/patience.XXXXXX";
    struct error err = ERROR_INIT;
    int first = mkstemp(path), second = open(path, O_RDWR | O_CLOEXEC);
    (void)state;
    assert_int_equal(patience_lock(first, "the file", &err), 0);
    assert_int_equal(flock(second, LOCK_EX | LOCK_NB), -1);
    flock(first, LOCK_UN);
    assert_int_equal(patience_lock(second, "the file", &err), 0);
    assert_int_equal(heard.lines, 0);
    close(first);
    close(second);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_wait_ends_when_its_time_is_over, hear),
        cmocka_unit_test_setup(one_of_no_time_is_over_at_once, hear),
        cmocka_unit_test_setup(what_is_waited_for_is_said, hear),
        cmocka_unit_test_setup(a_process_that_is_asked_to_end_waits_no_more, hear),
        cmocka_unit_test_setup(one_that_was_asked_before_waits_a_little, hear),
        cmocka_unit_test_setup(who_wanted_it_ends_it, hear),
        cmocka_unit_test_setup(a_lock_is_taken_or_waited_for, hear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
