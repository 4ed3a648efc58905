/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/time.h"
#include "lib/unit.h"

/* Values computed by Python's datetime. */
static void a_stamp_is_the_date_in_utc(void **unused)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } cases[] = {
        {0, "1970-01-01T00:00:00"},
        {951782400, "2000-02-29T00:00:00"},
        {951868799, "2000-02-29T23:59:59"},
        {4107542399, "2100-02-28T23:59:59"},
        {1709164800, "2024-02-29T00:00:00"},
        {1735689599, "2024-12-31T23:59:59"},
        {253402300799, "9999-12-31T23:59:59"},
        {155195912693, "6887-12-17T23:44:53"},
        {222683032287, "9026-07-18T21:51:27"},
        {20460256196, "2618-05-12T12:29:56"},
        {31160284220, "2957-06-06T10:30:20"},
        {208286307707, "8570-05-01T03:41:47"},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[TIME_STAMP_BYTES];
        time_stamp_of(cases[i].seconds, 45, text);
        assert_memory_equal(text, cases[i].text, 19);
        assert_string_equal(text + 19, ".045Z ");
        assert_int_equal(time_stamp_length(text), TIME_STAMP_BYTES - 1);
    }
}

static void what_is_no_stamp(void **unused)
{
    static const char *const lines[] = {"",
                                        "tf-exec: m.tfg",
                                        "2026-11-28",
                                        "2026-11-28T11:05:12Z x",
                                        "2026-11-28T11:05:12.345Z",
                                        "2026-11-28 11:05:12.345Z tf-run: ended"};
    char now[TIME_STAMP_BYTES];
    (void)unused;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_int_equal(time_stamp_length(lines[i]), 0);
    time_stamp(now);
    assert_int_equal(time_stamp_length(now), strlen(now));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stamp_is_the_date_in_utc),
        cmocka_unit_test(what_is_no_stamp),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
