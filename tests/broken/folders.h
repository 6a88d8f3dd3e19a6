/* SPDX-License-Identifier: Apache-2.0
 *
 * Registries over folders of modules made by the test.
 */
#ifndef BROKEN_FOLDERS_H
#define BROKEN_FOLDERS_H

#include "registry/registry.h"

#include "tests/broken/build.h"

/* No folder of the user's or the environment's is searched; logging is quiet. */
static inline void folders_start(void)
{
    scratch_make();
    unsetenv("STRATA_PLUGIN_PATH");
    setenv("HOME", in_scratch("home"), 1);
    setenv("XDG_DATA_HOME", "", 1);
    strata_set_logger(NULL, NULL, STRATA_LOG_ERROR);
}

static inline const char *folder(const char *name)
{
    const char *path = in_scratch(name);
    cr_assert_eq(mkdir(path, 0755), 0, "cannot make %s", path);
    return path;
}

/* A registry over a search path and a default folder, both inside the scratch folder;
 * either may be NULL. */
static inline strata_registry *over(const char *path, const char *default_folder)
{
    strata_registry_options options = {.struct_size = sizeof options,
                                       .search_path = path};
    strata_registry *r;
    strata_error err = {0};
    cr_assert_eq(registry_create(&r, &options,
                                 default_folder ? default_folder : in_scratch("none"),
                                 &err),
                 STRATA_OK, "%s", err.message);
    return r;
}

static inline const struct registry_layer *find(strata_registry *r, const char *type)
{
    const struct registry_layer *layer;
    strata_error err = {0};
    cr_assert_eq(registry_find(r, type, &layer, &err), STRATA_OK, "%s: %s", type,
                 err.message);
    return layer;
}

static inline void expect_missing(strata_registry *r, const char *type,
                                  const char *const *texts)
{
    const struct registry_layer *layer;
    strata_error err = {0};
    cr_expect_eq(registry_find(r, type, &layer, &err), STRATA_ENOTFOUND, "%s: %s", type,
                 err.message);
    cr_expect_null(layer);
    for (; *texts; texts++)
        cr_expect_not_null(strstr(err.message, *texts), "%s: want '%s' in '%s'", type,
                           *texts, err.message);
}

static inline void expect_path(strata_registry *r, const char *type, const char *path)
{
    struct module_info info = module_info(find(r, type)->module);
    cr_expect_str_eq(info.path, path, "%s comes from %s, not %s", type, info.path, path);
}

/* The reason recorded for a path, or "". */
static inline const char *rejection(strata_registry *r, const char *path)
{
    for (size_t i = 0; i < registry_rejections(r); i++)
        if (!strcmp(registry_rejection(r, i).path, path))
            return registry_rejection(r, i).reason;
    return "";
}

static inline void expect_rejected(strata_registry *r, const char *path, const char *text)
{
    const char *reason = rejection(r, path);
    cr_expect_not_null(strstr(reason, text), "%s: want '%s', got '%s'", path, text,
                       reason);
}

#endif /* BROKEN_FOLDERS_H */
