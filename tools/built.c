/* SPDX-License-Identifier: Apache-2.0
 *
 * What options of the command still change in an engine that is built.
 */
#include "tools/tool.h"

#include <stdlib.h>
#include <string.h>

/* A value of --set that holds for any engine on a handle. */
struct handle_key {
    const char *key; /* with the = */
    int (*set)(strata_handle *h, const char *value, strata_error *err);
};

static int set_threads(strata_handle *h, const char *value, strata_error *err)
{
    char *end;
    const long n = strtol(value, &end, 10);
    if (!value[0] || *end || n < 0 || n > 4096)
        return error_set(err, STRATA_EINVAL, "'%s' is not a number of threads, 0 to 4096",
                         value);
    return strata_set_threads(h, (int)n, err);
}

static int set_wait(strata_handle *h, const char *value, strata_error *err)
{
    static const char *const names[] = {[STRATA_WAIT_SPIN] = "spin",
                                        [STRATA_WAIT_YIELD] = "yield",
                                        [STRATA_WAIT_SLEEP] = "sleep"};
    for (int i = STRATA_WAIT_SPIN; i <= STRATA_WAIT_SLEEP; i++)
        if (strcmp(value, names[i]) == 0)
            return strata_set_wait(h, i, err);
    return error_set(err, STRATA_EINVAL, "'%s' is not one of: spin, yield, sleep", value);
}

static const struct handle_key handle_keys[] = {{"runtime.threads=", set_threads},
                                                {"runtime.wait=", set_wait}};

static const struct handle_key *find_key(const char *set)
{
    for (size_t i = 0; i < ARRAY_LENGTH(handle_keys); i++)
        if (strncmp(set, handle_keys[i].key, strlen(handle_keys[i].key)) == 0)
            return &handle_keys[i];
    return NULL;
}

int tool_set_built(strata_handle *h, const struct tool_options *o, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < o->n_set && status == STRATA_OK; i++) {
        const struct handle_key *k = find_key(o->set[i]);
        status = k->set(h, o->set[i] + strlen(k->key), err);
        if (status != STRATA_OK)
            error_prefix(err, "--set %s", o->set[i]);
    }
    return status;
}

int tool_check_built(const struct tool_options *o, const char *path, strata_error *err)
{
    for (size_t i = 0; i < o->n_set; i++)
        if (!find_key(o->set[i]))
            return error_set(err, STRATA_EINVAL,
                             "%s: --set %s cannot change an engine that is built, only "
                             "runtime.threads and runtime.wait can; give the network's "
                             "INI file, or build again",
                             path, o->set[i]);
    const char *option = o->n_define      ? "--define"
                         : o->costs       ? "--costs"
                         : o->save_costs  ? "--save-costs"
                         : o->measure_all ? "--measure-all"
                                          : NULL;
    return option ? error_set(err, STRATA_EINVAL,
                              "%s: %s cannot change an engine that is built; give the "
                              "network's INI file, or build again",
                              path, option)
                  : STRATA_OK;
}
