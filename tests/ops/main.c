/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the cases of tests/data/golden, or of the files named, on the device TF_TEST_DEVICE (CPU:0),
 * and says as TAP how they went; with all files, also which op lacks what kind of case.
 * TF_TEST_CASE=TEXT runs only the cases whose names contain it. What the device has no kernel for
 * is skipped.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/ops.h"
#include "tests/lib/test_device.h"
#include "tests/ops/check.h"
#include "tests/ops/coverage.h"

#define CASES "tests/data/golden/*.txt"

static int n_tests, n_failed, n_skipped;
static const char *device_type = "CPU";

/* Whether it failed because the device has no kernel for an op of it, as others than the CPU may.
 */
static bool lacks_kernel(const struct error *err)
{
    char text[80];
    snprintf(text, sizeof text, "no %s kernel", device_type);
    return err->code && strcmp(device_type, "CPU") != 0 && strstr(err->text, text);
}

static void report(const char *name, const struct error *err)
{
    n_tests++;
    if (lacks_kernel(err)) {
        n_skipped++;
        printf("ok %d - %s # SKIP %s\n", n_tests, name, err->text);
    } else {
        n_failed += err->code != 0;
        printf("%sok %d - %s\n", err->code ? "not " : "", n_tests, name);
        if (err->code)
            printf("# %s\n", err->text);
    }
    fflush(stdout);
}

static const char *mode_name(int mode)
{
    static const char *const names[] = {"fed", "constant", "dynamic", "unknown shapes"};
    return names[mode];
}

static int run_modes(const struct checker *checker, const struct test_case *test, struct error *err)
{
    bool checked;
    for (int mode = 0; mode < CHECK_MODES; mode++)
        if (check_op(checker, test, (enum check_mode)mode, err))
            return error_prefix(err, "%s:%d: %s: ", test->file, test->line, mode_name(mode));
    if (check_narrow(checker, test, err))
        return error_prefix(err, "%s:%d: ", test->file, test->line);
    if (!getenv("TF_TEST_VALUES") && check_gradient(checker, test, &checked, err))
        return error_prefix(err, "%s:%d: ", test->file, test->line);
    return 0;
}

static void run_case(const struct checker *checker, const struct test_case *test)
{
    struct error err = ERROR_INIT;
    if (!test->graph)
        run_modes(checker, test, &err);
    else if (check_graph(checker, test, false, &err) || check_graph(checker, test, true, &err))
        error_prefix(&err, "%s:%d: ", test->file, test->line);
    report(test->name, &err);
}

static void run_file(const struct checker *checker, const char *path)
{
    struct error err = ERROR_INIT;
    struct case_reader reader = {.file = fopen(path, "r"), .path = path};
    const char *filter = getenv("TF_TEST_CASE");
    struct test_case test;
    bool more = reader.file != NULL;
    if (!reader.file) {
        error_set_errno(&err, ERR_NOINPUT, "%s", path);
        report(path, &err);
    }
    while (more) {
        if (case_read(&reader, &test, &more, &err)) {
            report(path, &err);
            more = false;
        } else if (more && (!filter || strstr(test.name, filter))) {
            run_case(checker, &test);
        }
        case_release(&test);
    }
    free(reader.text);
    if (reader.file)
        fclose(reader.file);
}

static void report_coverage(const struct checker *checker, const char *device)
{
    for (size_t i = 0; i < registry_count(ops_registry()); i++) {
        struct error err = ERROR_INIT;
        struct str missing = STR_INIT, name = STR_INIT;
        const char *op = registry_at(ops_registry(), i)->def->name;
        bool crosses = !strncmp(op, "Send", 4) || !strncmp(op, "Recv", 4);
        if (!crosses) /* those need a peer: tests/unit/pass/part.c */
            coverage_missing(checker->coverage, i, device, &missing);
        str_printf(&name, "complete: %s", op);
        if (missing.n)
            error_set(&err, ERR_DATA, "no case of:%s", str_text(&missing));
        report(str_text(&name), &err);
        str_release(&name);
        str_release(&missing);
    }
}

static void run_all(const struct checker *checker, const char *device)
{
    glob_t files;
    if (glob(CASES, 0, NULL, &files)) {
        struct error err = ERROR_INIT;
        error_set(&err, ERR_NOINPUT, "no %s here", CASES);
        report("cases", &err);
        return;
    }
    for (size_t i = 0; i < files.gl_pathc; i++)
        run_file(checker, files.gl_pathv[i]);
    globfree(&files);
    if (!getenv("TF_TEST_CASE") && !getenv("TF_TEST_VALUES") && !n_skipped)
        report_coverage(checker, device);
}

int main(int argc, char **argv)
{
    struct error err = ERROR_INIT;
    struct checker checker = {.device = test_device_open(2, &err)};
    if (!checker.device && test_device_lacks(&err)) {
        printf("1..1\nok 1 - device # SKIP %s\n", err.text);
        return 0;
    }
    if (!checker.device) {
        printf("1..1\nnot ok 1 - device\n# %s\n", err.text);
        return 1;
    }
    device_type = checker.device->type;
    checker.coverage = coverage_new();
    for (int i = 1; i < argc; i++)
        run_file(&checker, argv[i]);
    if (argc == 1)
        run_all(&checker, checker.device->type);
    printf("1..%d\n", n_tests);
    coverage_free(checker.coverage);
    device_free(checker.device);
    return n_failed ? 1 : 0;
}
