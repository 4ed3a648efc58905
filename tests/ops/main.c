/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the cases of tests/data/golden, or of the files named, on the device TF_TEST_DEVICE (CPU:0),
 * and says as TAP how they went; with all files, also which op lacks what kind of case.
 * TF_TEST_CASE=TEXT runs only the cases whose names contain it. What the device has no kernel for
 * is skipped. All files are run by a process per processor, which take turns at the cases.
 */
#include <glob.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "ops/ops.h"
#include "tests/lib/test_device.h"
#include "tests/ops/check.h"
#include "tests/ops/coverage.h"

#define CASES "tests/data/golden/*.txt"
#define PROCESSES_MAX 8

struct counts {
    atomic_int tests, failed, skipped;
};

static struct counts *counts; /* shared by the processes */
static const char *device_type = "CPU";
static int n_processes = 1, process, n_cases; /* of which this process runs every n-th */

/* Whether it failed because the device has no kernel for an op of it, as others than the CPU may.
 */
static bool lacks_kernel(const struct error *err)
{
    char text[80];
    snprintf(text, sizeof text, "no %s kernel", device_type);
    return err->code && strcmp(device_type, "CPU") != 0 && strstr(err->text, text);
}

/* Whole lines are written, without numbers, as other processes write in between. */
static void report(const char *name, const struct error *err)
{
    counts->tests++;
    if (lacks_kernel(err)) {
        counts->skipped++;
        printf("ok - %s # SKIP %s\n", name, err->text);
    } else {
        counts->failed += err->code != 0;
        printf("%sok - %s\n", err->code ? "not " : "", name);
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
        } else if (more && n_cases++ % n_processes == process &&
                   (!filter || strstr(test.name, filter))) {
            run_case(checker, &test);
        }
        case_release(&test);
    }
    free(reader.text);
    if (reader.file)
        fclose(reader.file);
}

/* Neither a device nor a case was there. */
static void report_lack(const struct error *err)
{
    if (!test_device_lacks(err)) {
        report("cases", err);
        return;
    }
    counts->tests++;
    printf("ok - cases # SKIP %s\n", err->text);
}

/* NULL: there is none here. */
static struct device *open_device(struct error *err)
{
    struct device *device = test_device_open(2, err);
    if (device)
        device_type = device->type;
    return device;
}

static void run_files(struct checker *checker, char **paths, size_t n, struct error *err)
{
    checker->device = open_device(err);
    for (size_t i = 0; i < n && checker->device; i++)
        run_file(checker, paths[i]);
    device_free(checker->device);
}

static void wait_for(pid_t child)
{
    struct error err = ERROR_INIT;
    int status;
    if (waitpid(child, &status, 0) != child)
        error_set_errno(&err, ERR_INTERNAL, "waitpid");
    else if (WIFSIGNALED(status))
        error_set(&err, ERR_INTERNAL, "killed by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status))
        error_set(&err, ERR_INTERNAL, "ended with %d", WEXITSTATUS(status));
    if (err.code)
        report("a process", &err);
}

/* Threads do not survive a fork, so each process opens a device of its own. */
static void run_in_processes(struct checker *checker, char **paths, size_t n)
{
    pid_t children[PROCESSES_MAX];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    n_processes = processors < PROCESSES_MAX ? (int)processors : PROCESSES_MAX;
    for (process = 0; process < n_processes; process++) {
        children[process] = fork();
        if (children[process] < 0)
            abort();
        if (!children[process]) {
            struct error ignored = ERROR_INIT; /* the first process finds it, too */
            run_files(checker, paths, n, &ignored);
            exit(0);
        }
    }
    for (int i = 0; i < n_processes; i++)
        wait_for(children[i]);
}

static void report_coverage(const struct checker *checker)
{
    for (size_t i = 0; i < registry_count(ops_registry()); i++) {
        struct error err = ERROR_INIT;
        struct str missing = STR_INIT, name = STR_INIT;
        const char *op = registry_at(ops_registry(), i)->def->name;
        bool crosses = !strncmp(op, "Send", 4) || !strncmp(op, "Recv", 4);
        if (!crosses) /* those need a peer: tests/unit/pass/part.c */
            coverage_missing(checker->coverage, i, device_type, &missing);
        str_printf(&name, "complete: %s", op);
        if (missing.n)
            error_set(&err, ERR_DATA, "no case of:%s", str_text(&missing));
        report(str_text(&name), &err);
        str_release(&name);
        str_release(&missing);
    }
}

static void run_all(struct checker *checker, struct error *err)
{
    glob_t files;
    if (glob(CASES, 0, NULL, &files)) {
        error_set(err, ERR_NOINPUT, "no %s here", CASES);
        return;
    }
    run_in_processes(checker, files.gl_pathv, files.gl_pathc);
    globfree(&files);
    checker->device = open_device(err);
    if (checker->device && !getenv("TF_TEST_CASE") && !getenv("TF_TEST_VALUES") && !counts->skipped)
        report_coverage(checker);
    device_free(checker->device);
}

int main(int argc, char **argv)
{
    struct error err = ERROR_INIT;
    struct checker checker = {.coverage = coverage_new()};
    counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counts == MAP_FAILED)
        abort();
    if (argc == 1)
        run_all(&checker, &err);
    else
        run_files(&checker, argv + 1, (size_t)argc - 1, &err);
    if (err.code)
        report_lack(&err);
    printf("1..%d\n", counts->tests);
    coverage_free(checker.coverage);
    return counts->failed != 0;
}
