/* SPDX-License-Identifier: Apache-2.0
 *
 * Device modules: strata-KIND.so, found and opened on first use. libstrata depends on no
 * driver or toolkit; the module brings them.
 */
#include "core/device.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/installed.h"
#include "core/trust.h"

enum { PATH_SIZE = PATH_MAX };

/* Whether FOLDER/strata-KIND.so exists; relative folders are never searched. */
static bool find_in(char path[PATH_SIZE], const char *folder, size_t length,
                    const char *kind)
{
    if (length == 0 || folder[0] != '/')
        return false;
    int n = snprintf(path, PATH_SIZE, "%.*s/strata-%s.so", (int)length, folder, kind);
    return n > 0 && n < PATH_SIZE && access(path, F_OK) == 0;
}

static int find_module(char path[PATH_SIZE], const char *kind, int index,
                       strata_error *err)
{
    struct installed_folder installed[INSTALLED_FOLDERS];
    const size_t n = installed_folders(installed, INSTALLED_DEVICES);
    const char *folders = secure_getenv("STRATA_DEVICE_PATH");
    for (const char *at = folders; at && *at;) {
        const size_t length = strcspn(at, ":");
        if (find_in(path, at, length, kind))
            return STRATA_OK;
        at += length + (at[length] == ':');
    }
    for (size_t i = 0; i < n; i++)
        if (find_in(path, installed[i].path, strlen(installed[i].path), kind))
            return STRATA_OK;
    return error_set(err, STRATA_EUNSUPPORTED,
                     "device '%s:%d': strata-%s.so is neither in STRATA_DEVICE_PATH (%s) "
                     "nor in %s%s%s; install Strata built with CUDA, or use device host",
                     kind, index, kind, folders ? folders : "not set", installed[0].path,
                     n > 1 ? " nor in " : "", n > 1 ? installed[1].path : "");
}

int device_module_open(struct device **out, const char *kind, int index,
                       strata_error *err)
{
    char found[PATH_SIZE], path[PATH_SIZE];
    device_entry *entry;
    int status = find_module(found, kind, index, err);
    if (status == STRATA_OK && (status = trust_path(found, path, err)) != STRATA_OK)
        error_prefix(err, "device '%s:%d'", kind, index);
    if (status != STRATA_OK)
        return status;
    /* Never closed: its code may run as long as the process does, and a second open of
     * the same file gives the same module. */
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module)
        return error_set(
            err, STRATA_EUNSUPPORTED,
            "device '%s:%d': cannot load %s; install the libraries it names, "
            "or use device host",
            kind, index, dlerror());
    void *symbol = dlsym(module, DEVICE_ENTRY);
    if (!symbol)
        return error_set(err, STRATA_EMODULE,
                         "device '%s:%d': %s has no " DEVICE_ENTRY
                         ": it is no device module of this release; reinstall Strata",
                         kind, index, path);
    memcpy(&entry, &symbol, sizeof entry);
    const struct device_abi abi = DEVICE_ABI_HERE;
    status = entry(&abi, out, index, err);
    if (status != STRATA_OK)
        error_prefix(err, "device '%s:%d'", kind, index);
    return status;
}
