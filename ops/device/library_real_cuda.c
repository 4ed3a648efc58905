/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/device/library_real_cuda.h"

#include <dlfcn.h>

static void find(struct cuda_library *library)
{
    void *loaded = dlopen(library->file, RTLD_NOW | RTLD_LOCAL);
    if (!loaded) {
        error_set(&library->missing, ERR_UNAVAILABLE, "the library of %s, %s, cannot be loaded: %s",
                  library->what, library->file, dlerror());
        return;
    }
    for (size_t i = 0; i < library->n; i++) {
        const struct cuda_symbol *symbol = &library->symbols[i];
        void **function = (void **)((char *)library->functions + symbol->at);
        *function = dlsym(loaded, symbol->name);
        if (!*function && !library->missing.code)
            error_set(&library->missing, ERR_UNAVAILABLE, "%s has no %s", library->file,
                      symbol->name);
    }
}

int cuda_library_load(struct cuda_library *library, struct error *err)
{
    pthread_mutex_lock(&library->lock);
    if (!library->is_tried)
        find(library);
    library->is_tried = true;
    pthread_mutex_unlock(&library->lock);
    if (library->missing.code)
        *err = library->missing;
    return library->missing.code;
}
