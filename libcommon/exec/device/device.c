/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding and loading the module of a device. The libraries of a module (OpenBLAS, OpenMP) read the
 * environment in their constructors, so while they are loaded the environment also contains choices
 * for this machine; values that the user has set are kept.
 */
#include "exec/device/device.h"

#include <ctype.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cores.h"
#include "base/memory.h"
#include "base/vec.h"
#include "exec/device/pinned.h"

/* Instruction sets that modules are built for, best first, and the OpenBLAS kernels that fit them.
 * By itself OpenBLAS knows only CPUs older than itself and takes SSE3 kernels on others. */
struct isa {
    const char *name;
    const char *blas; /* NULL: OpenBLAS' own choice */
};

static const struct isa isas[] = {{"v4", "SkylakeX"}, {"v3", "Haswell"}, {"base", NULL}};
#define N_ISAS ((int)(sizeof isas / sizeof *isas))

/* Tests features that every machine of a level has, as only newer compilers know levels by name. */
static bool machine_has(int isa)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("bmi2");
    if (!strcmp(isas[isa].name, "v4"))
        return v3 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (!strcmp(isas[isa].name, "v3"))
        return v3;
#endif
    return !strcmp(isas[isa].name, "base");
}

/* The folder of modules, which is that of this library. */
static int module_folder(struct str *folder, struct error *err)
{
    Dl_info info;
    if (!dladdr((void *)(uintptr_t)&module_folder, &info) || !info.dli_fname)
        return error_set(err, ERR_CONFIG, "cannot find where the library was loaded from");
    const char *slash = strrchr(info.dli_fname, '/');
    if (slash)
        str_append_bytes(folder, info.dli_fname, (size_t)(slash - info.dli_fname) + 1);
    return 0;
}

static void out_of_memory(void)
{
    mem_exhausted(0);
}

/* oneDNN is C++: a failing `new` would throw through our frames and abort. So its small allocations
 * get the policy of mem_alloc; its large ones do not come from `new`. Within another's program
 * `new` belongs to that program, which may catch the exception. */
static void catch_failing_new(void)
{
    typedef void handler(void);
    if (!mem_has_handler())
        return;
    handler *(*set)(handler *);
    void *runtime = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    void *symbol = runtime ? dlsym(runtime, "_ZSt15set_new_handlerPFvvE") : NULL;
    memcpy(&set, &symbol, sizeof set);
    if (set)
        set(out_of_memory);
}

/* How often a thread of a team polls before it sleeps. libgomp's default, 300,000 times, takes many
 * milliseconds: on a busy machine it burns the time that the awaited thread would need (a small
 * model took 20 times longer beside other processes). This is some tenths of a millisecond, more
 * than the time between two parallel kernels of a step. */
#define SPIN_COUNT "4000"

/* The environment with more entries in front. It is never freed, as other threads may be in getenv
 * at any time, for which setenv would not be safe. Behind its end it points to the one made
 * before. */
static char **environment_with(char *const *entries, int n)
{
    static char **made; /* guarded by `loading` */
    int n_old = 0;
    while (environ[n_old])
        n_old++;
    char **both = mem_array((size_t)(n + n_old) + 2, sizeof *both);
    memcpy(both, entries, (size_t)n * sizeof *both);
    memcpy(both + n, environ, (size_t)n_old * sizeof *both);
    both[n + n_old + 1] = (char *)made;
    return made = both;
}

/* OpenBLAS' constructor takes 128 MiB of address space for each thread and retries for ever if
 * there is less; with the libraries and the stacks of a team it comes to about this much. */
#define LIBRARIES_BYTES ((size_t)128 << 20)
#define THREAD_BYTES ((size_t)144 << 20)

/* ERR_OS if a limit on address space leaves too little to load kernels. */
static int check_address_space(struct error *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return 0;
    long threads = cores_usable();
    const char *asked = getenv("OMP_NUM_THREADS");
    if (asked && atol(asked) > 0 && atol(asked) < threads)
        threads = atol(asked);
    size_t bytes = LIBRARIES_BYTES + (size_t)threads * THREAD_BYTES;
    void *probe = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (probe == MAP_FAILED)
        return error_set(err, ERR_OS,
                         "no memory to load kernels for %ld threads: that takes %zu MiB of address "
                         "space, and the limit (ulimit -v) is %llu",
                         threads, bytes >> 20, (unsigned long long)limit.rlim_cur >> 20);
    munmap(probe, bytes);
    return 0;
}

/* Loads folder/name if it exists. */
static int load_from(const struct str *folder, const char *name, const char *blas, void **module,
                     struct error *err)
{
    static char coretype[64], spin[] = "GOMP_SPINCOUNT=" SPIN_COUNT;
    char *entries[2], **usual = environ;
    struct str path = STR_INIT;
    int n = 0;
    str_printf(&path, "%s%s", str_text(folder), name);
    if (!access(path.data, R_OK)) {
        catch_failing_new();
        if (blas && !getenv("OPENBLAS_CORETYPE")) {
            snprintf(coretype, sizeof coretype, "OPENBLAS_CORETYPE=%s", blas);
            entries[n++] = coretype;
        }
        if (!getenv("OMP_WAIT_POLICY") && !getenv("GOMP_SPINCOUNT"))
            entries[n++] = spin;
        if (n)
            __atomic_store_n(&environ, environment_with(entries, n), __ATOMIC_RELEASE);
        /* Threads of the OpenMP team outlive the device: a module is never unloaded. */
        *module = dlopen(path.data, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
        if (n)
            __atomic_store_n(&environ, usual, __ATOMIC_RELEASE);
        if (!*module)
            error_set(err, ERR_CONFIG, "cannot load kernels: %s", dlerror());
    }
    str_release(&path);
    return err->code;
}

/* Loads the best module that exists for the machine, or the one that TF_CPU_ISA names. */
static int load_cpu(void **module, struct error *err)
{
    const char *wanted = getenv("TF_CPU_ISA"), *blas = NULL;
    struct str folder = STR_INIT;
    char name[32];
    if (check_address_space(err) || module_folder(&folder, err))
        return err->code;
    error_set(err, ERR_CONFIG, "no kernels for this machine%s%s", wanted ? ": TF_CPU_ISA is " : "",
              wanted ? wanted : "");
    for (int i = 0; i < N_ISAS && !*module; i++) {
        if (!machine_has(i) || (wanted && *wanted && strcmp(wanted, isas[i].name)))
            continue;
        /* An older module still gets the fast BLAS kernels, which the machine supports. */
        if (!blas)
            blas = isas[i].blas;
        snprintf(name, sizeof name, "cpu-%s.so", isas[i].name);
        load_from(&folder, name, blas, module, err);
    }
    str_release(&folder);
    if (*module)
        error_clear(err);
    return err->code;
}

/* ---- other types ---- */

/* Loads a module from the folders of TF_DEVICE_PATH in turn, then from the library's own folder. */
static int load_other(const char *type, void **module, struct error *err)
{
    const char *path = getenv("TF_DEVICE_PATH");
    struct str name = STR_INIT, folder = STR_INIT; /* "cuda.so" */
    bool is_name = *type != 0;
    for (const char *c = type; *c && is_name; c++) {
        is_name = isalnum((unsigned char)*c) || *c == '_';
        str_append_char(&name, (char)tolower((unsigned char)*c));
    }
    str_append(&name, ".so");
    error_clear(err);
    if (!is_name)
        error_set(err, ERR_CONFIG, "no device has the type '%s'", type);
    while (!err->code && !*module && path && *path) {
        size_t n = strcspn(path, ":");
        str_clear(&folder);
        str_append_bytes(&folder, path, n);
        str_append_char(&folder, '/');
        if (n)
            load_from(&folder, str_text(&name), NULL, module, err);
        path += n + (path[n] == ':');
    }
    str_clear(&folder);
    if (!err->code && !*module && !module_folder(&folder, err))
        load_from(&folder, str_text(&name), NULL, module, err);
    if (!err->code && !*module)
        error_set(err, ERR_UNAVAILABLE, "no device of type '%s' in this build: it has no %s", type,
                  str_text(&name));
    str_release(&folder);
    str_release(&name);
    return err->code;
}

/* ---- host memory that devices know ---- */

#define DEVICES_MAX 64 /* further devices are not told */

struct pin {
    const void *data;
    size_t bytes;
    uint64_t by; /* bit set of indices of devices */
};

static pthread_mutex_t pinning = PTHREAD_MUTEX_INITIALIZER; /* guards the variables below */
static struct device *devices[DEVICES_MAX];
static VEC(struct pin) all;

/* If a device cannot pin memory, it copies as from any other. */
static void pin(struct pin *pinned, int place)
{
    struct error ignored = ERROR_INIT;
    struct device *device = devices[place];
    if (device && !device->memory->pin(device, pinned->data, pinned->bytes, &ignored))
        pinned->by |= (uint64_t)1 << place;
}

static void unpin(struct pin *pinned, int place)
{
    if (pinned->by >> place & 1)
        devices[place]->memory->unpin(devices[place], pinned->data);
    pinned->by &= ~((uint64_t)1 << place);
}

void pinned_add(const void *data, size_t bytes)
{
    struct pin pinned = {.data = data, .bytes = bytes};
    pthread_mutex_lock(&pinning);
    for (int i = 0; i < DEVICES_MAX; i++)
        pin(&pinned, i);
    vec_push(&all, pinned);
    pthread_mutex_unlock(&pinning);
}

void pinned_remove(const void *data)
{
    pthread_mutex_lock(&pinning);
    size_t at = all.n - 1; /* memory added last is often removed first */
    while (at > 0 && all.items[at].data != data)
        at--;
    BUG_ON(!all.n || all.items[at].data != data);
    for (int i = 0; i < DEVICES_MAX; i++)
        unpin(&all.items[at], i);
    all.items[at] = vec_pop(&all);
    if (!all.n)
        vec_release(&all);
    pthread_mutex_unlock(&pinning);
}

/* Puts a device (or NULL) in the place of another (or of NULL), which unpins all memory. */
static void replace_device(struct device *before, struct device *device)
{
    int place = 0;
    pthread_mutex_lock(&pinning);
    while (place < DEVICES_MAX && devices[place] != before)
        place++;
    if (place < DEVICES_MAX) {
        vec_each(pinned, &all) {
            unpin(pinned, place);
        }
        devices[place] = device;
        vec_each(pinned, &all) {
            pin(pinned, place);
        }
    }
    pthread_mutex_unlock(&pinning);
}

/* ---- devices ---- */

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

struct device *device_open(const char *type, int index, const struct device_options *options,
                           struct error *err)
{
    void *module = NULL;
    pthread_mutex_lock(&loading);
    int code = strcmp(type, "CPU") ? load_other(type, &module, err) : load_cpu(&module, err);
    pthread_mutex_unlock(&loading);
    if (code)
        return NULL;
    const struct device_entry *entry = dlsym(module, "device_entry");
    if (!entry || entry->abi != DEVICE_ABI) {
        error_set(err, ERR_CONFIG, "the kernels of device type '%s' are of another version", type);
        return NULL;
    }
    struct device *device = entry->open(index, options, err);
    if (device) {
        device->module = module;
        if (device->memory->pin)
            replace_device(NULL, device);
    }
    return device;
}

void device_free(struct device *device)
{
    if (!device)
        return;
    if (device->memory->pin)
        replace_device(device, NULL);
    device->free(device);
}

/* ---- memory ---- */

struct buffer *device_alloc(struct device *device, size_t bytes)
{
    struct buffer *buffer = device->memory->alloc(device, bytes);
    if (buffer || device->is_host)
        return buffer;
    mem_reclaim();
    return device->memory->alloc(device, bytes);
}

struct buffer *device_alloc_host(struct device *device, size_t bytes)
{
    if (device->is_host)
        return device_alloc(device, bytes);
    if (device->memory->alloc_host)
        return device->memory->alloc_host(device, bytes);
    return buffer_new(bytes);
}
