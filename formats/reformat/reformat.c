/* SPDX-License-Identifier: Apache-2.0
 *
 * Host reformat: argument checks, the kernel table, and the choice of a row.
 */
#include "formats/reformat/reformat.h"

#include "core/arguments.h"
#include "core/team.h"
#include "formats/reformat/kernels.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#ifdef REFORMAT_X86
#include <cpuid.h>
#endif

#define TEAM_BYTES (4 << 20) /* that are worth a team for one call */

enum level { PLAIN, AVX2, AVX512, LEVELS };
enum shape { RUNS, PANEL, GENERIC };

static const char *const level_names[LEVELS] = {"plain", "avx2", "avx512"};

static const struct row {
    const char *name;
    enum shape shape;
    enum level level;
    const struct reformat_kernels *kernels;
} rows[] = {
/* best first; the first that fits wins */
#ifdef REFORMAT_X86
    {"runs_avx512", RUNS, AVX512, &reformat_avx512},
    {"panel_avx512", PANEL, AVX512, &reformat_avx512},
    {"runs_avx2", RUNS, AVX2, &reformat_avx2},
    {"panel_avx2", PANEL, AVX2, &reformat_avx2},
#endif
    {"runs_plain", RUNS, PLAIN, &reformat_plain},
    {"panel_plain", PANEL, PLAIN, &reformat_plain},
    {"generic", GENERIC, PLAIN, &reformat_plain},
};

/* What fits a pair of descriptors. */
struct fit {
    bool runs, panel;
    struct runs as_runs;
    struct panel as_panel;
};

/* ---- the processor ------------------------------------------------------------------
 */

static enum level cpu_level(void)
{
#ifdef REFORMAT_X86
    unsigned a, b, c = 0, d;
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__get_cpuid(1, &a, &b, &c, &d) ||
        !(c & bit_F16C))
        return PLAIN;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        return AVX512;
    return AVX2;
#else
    return PLAIN;
#endif
}

/* The processor's level, at most what STRATA_CPU names. */
static enum level find_allowed(void)
{
    const enum level best = cpu_level();
    const char *cap = getenv("STRATA_CPU");
    if (cap == NULL || *cap == '\0')
        return best;
    for (int i = 0; i < LEVELS; i++)
        if (strcmp(cap, level_names[i]) == 0)
            return (enum level)i < best ? (enum level)i : best;
    log_line(STRATA_LOG_WARNING,
             "STRATA_CPU=%s is unknown and ignored; use plain, avx2 or avx512", cap);
    return best;
}

static enum level allowed_level(void)
{
    static atomic_int known = -1;
    int level = atomic_load(&known);
    if (level < 0) {
        level = (int)find_allowed();
        atomic_store(&known, level);
    }
    return (enum level)level;
}

/* ---- rows ----------------------------------------------------------------------------
 */

static bool row_fits(const struct row *row, const struct fit *fit, enum level level)
{
    return row->level <= level &&
           (row->shape == GENERIC || (row->shape == RUNS ? fit->runs : fit->panel));
}

static struct fit fit_pair(const strata_desc *dst, const strata_desc *src)
{
    struct fit fit;
    fit.runs = runs_shape(&fit.as_runs, dst, src);
    fit.panel = panel_shape(&fit.as_panel, dst, src);
    return fit;
}

static size_t first_row(const struct fit *fit)
{
    size_t i = 0;
    while (!row_fits(&rows[i], fit, allowed_level()))
        i++; /* the generic row ends this */
    return i;
}

static void run_row(const struct row *row, const struct fit *fit, const strata_desc *dst,
                    void *dst_data, const strata_desc *src, const void *src_data)
{
    const struct reformat_job job = {
        .kernels = row->kernels,
        .dst_desc = dst,
        .src_desc = src,
        .dst = dst_data,
        .src = src_data,
        .dst_size = strata_dtype_size(dst->dtype),
        .src_size = strata_dtype_size(src->dtype),
        .bytes = strata_desc_bytes(dst),
    };
    if (row->shape == RUNS)
        runs_drive(&job, &fit->as_runs);
    else if (row->shape == PANEL)
        panel_drive(&job, &fit->as_panel);
    else
        generic_drive(&job);
}

/* ---- entries -------------------------------------------------------------------------
 */

static void run(const strata_desc *dst, void *dst_data, const strata_desc *src,
                const void *src_data)
{
    const struct fit fit = fit_pair(dst, src);
    run_row(&rows[first_row(&fit)], &fit, dst, dst_data, src, src_data);
}

void reformat_elements(void *dst, int dst_dtype, const void *src, int src_dtype, size_t n)
{
    static const struct reformat_kernels *const kernels[LEVELS] = {
        [PLAIN] = &reformat_plain,
#ifdef REFORMAT_X86
        [AVX2] = &reformat_avx2,
        [AVX512] = &reformat_avx512,
#endif
    };
    reformat_convert(kernels[allowed_level()], dst, dst_dtype, src, src_dtype, n);
}

int reformat(const strata_desc *dst, void *dst_data, const strata_desc *src,
             const void *src_data, strata_error *err)
{
    const int status = reformat_check(dst, dst_data, src, src_data, err);
    if (status == STRATA_OK && strata_desc_count(dst) > 0)
        run(dst, dst_data, src, src_data);
    return status;
}

/* The thread is the application's: a team that it kept would slow those of contexts. */
int strata_reformat(const strata_desc *dst, void *dst_data, const strata_desc *src,
                    const void *src_data, strata_error *err)
{
    int status = ARGUMENTS(err, {"dst", dst}, {"src", src});
    if (status == STRATA_OK)
        status = reformat_check(dst, dst_data, src, src_data, err);
    if (status != STRATA_OK || strata_desc_count(dst) == 0)
        return status;
    const bool alone = strata_desc_bytes(dst) < TEAM_BYTES;
    const int threads = alone ? threads_set(1) : 0;
    run(dst, dst_data, src, src_data);
    if (alone)
        threads_set(threads);
    else
        team_end();
    return STRATA_OK;
}

size_t reformat_rows(void)
{
    return ARRAY_LENGTH(rows);
}

const char *reformat_row_name(size_t row)
{
    return row < ARRAY_LENGTH(rows) ? rows[row].name : NULL;
}

int reformat_row(size_t row, const strata_desc *dst, void *dst_data,
                 const strata_desc *src, const void *src_data, strata_error *err)
{
    const int status = reformat_check(dst, dst_data, src, src_data, err);
    if (status != STRATA_OK || strata_desc_count(dst) == 0)
        return status;
    const struct fit fit = fit_pair(dst, src);
    if (row >= ARRAY_LENGTH(rows) || !row_fits(&rows[row], &fit, cpu_level()))
        return error_set(err, STRATA_EUNSUPPORTED,
                         "reformat: row %zu (%s) does not take this pair of descriptors "
                         "on this processor; use reformat_choose",
                         row, row < ARRAY_LENGTH(rows) ? rows[row].name : "none");
    run_row(&rows[row], &fit, dst, dst_data, src, src_data);
    return STRATA_OK;
}

size_t reformat_choose(const strata_desc *dst, const strata_desc *src)
{
    const struct fit fit = fit_pair(dst, src);
    return first_row(&fit);
}
