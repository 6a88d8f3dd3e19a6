/* SPDX-License-Identifier: Apache-2.0
 *
 * The cost file that is kept for a machine: $XDG_CACHE_HOME/strata/costs/KIND-HASH.costs,
 * the hash of all that tells one device from another, and of how runs are timed there. A
 * home folder may be shared by machines whose processors differ.
 */
#include "planner/cost/cost.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "core/host/wait.h"
#include "core/installed.h"
#include "core/text.h"
#include "io/file.h"

/* What /proc/cpuinfo calls the lines that tell processors apart, on x86 and on Arm. */
static const char *const identity[] = {
    "vendor_id", "cpu family", "model", "stepping", "flags", "cache size",
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features"};

/* How runs are timed (measure.c): costs of another way do not compare with these. */
static const char *const way[] = {[STRATA_HOST] = "", [STRATA_CUDA] = "between leads"};

static uint64_t hash_text(uint64_t hash, const char *text) /* FNV-1a */
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash;
}

static bool tells(const char *line)
{
    for (size_t i = 0; i < ARRAY_LENGTH(identity); i++)
        if (strncmp(line, identity[i], strlen(identity[i])) == 0)
            return true;
    return false;
}

/* Of the first processor, whose lines an empty one ends. */
static uint64_t hash_processor(uint64_t hash)
{
    char text[8192];
    const size_t n = file_head(text, sizeof text - 1, "/proc/cpuinfo");
    text[n] = '\0';
    for (char *line = text, *end; *line && *line != '\n'; line = end + 1) {
        end = line + strcspn(line, "\n");
        if (*end == '\0')
            break;
        *end = '\0';
        if (tells(line))
            hash = hash_text(hash, line);
    }
    return hash;
}

int cost_cache_path(char **out, const struct device_properties *d, strata_error *err)
{
    char folder[PATH_MAX];
    uint64_t hash = hash_text(UINT64_C(14695981039346656037), d->build);
    *out = NULL;
    hash = hash_text(hash, way[d->kind]);
    if (!installed_cache(folder, "costs"))
        return errno ? error_errno(err, STRATA_EIO, "%s: cannot be made", folder)
                     : error_set(err, STRATA_ENOTFOUND,
                                 "there is no cache folder that is the user's own and "
                                 "that nobody else may write to; mkdir -p and chmod go-w "
                                 "$XDG_CACHE_HOME, or ~/.cache, and strata in it; or "
                                 "plan with --costs=analytic");
    if (d->kind == STRATA_HOST)
        hash = hash_processor(hash);
    if (d->kind == STRATA_HOST && wait_sleeps(STRATA_WAIT_YIELD)) /* the environment's */
        hash = hash_text(hash, "asleep");
    *out = text_print("%s/%s-%016" PRIx64 ".costs", folder,
                      d->kind == STRATA_HOST ? "host" : "cuda", hash);
    return *out ? STRATA_OK : error_no_memory(err, 0, "the name of a cost file");
}
