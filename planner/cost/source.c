/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a plan's costs come from, by the network's options: the model, a file, the
 * device; and where measured ones are kept: in the file that was asked for, or else for
 * this machine in the user's cache, those of busy moments apart.
 */
#include "planner/cost/cost.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "io/file.h"
#include "planner/cost/busy.h"
#include "planner/planner.h"

/* Without other word a network is not measured longer than this, a build: the next goes
 * on from there. ns */
#define DEFAULT_BUDGET UINT64_C(10000000000)
static int read_saved(struct cost_table *t, const char *path, strata_error *err)
{
    struct cost_table saved;
    if (!path || access(path, F_OK) != 0)
        return STRATA_OK;
    cost_table_init(&saved, t->device);
    int status = cost_table_read(&saved, path, err);
    if (status == STRATA_OK)
        status = cost_table_merge(t, &saved, err);
    cost_table_free(&saved);
    return status;
}

/* What others saved meanwhile stays, unless the file begins anew, but for what `without`
 * has; of one cost ours, by which the plan was made. */
static int save_table(const struct cost_table *t, const char *path, bool anew,
                      const struct cost_table *without, strata_error *err)
{
    struct cost_table saved, all;
    const int lock = file_lock(path); /* until what others saved is written with ours */
    cost_table_init(&saved, t->device);
    cost_table_init(&all, t->device);
    const bool none = anew || (access(path, F_OK) != 0 && errno == ENOENT);
    int status = none ? STRATA_OK : cost_table_read(&saved, path, err);
    for (size_t i = 0; i < saved.n && status == STRATA_OK; i++)
        if (!without || !cost_table_find(without, saved.entries[i].key))
            status =
                cost_table_put(&all, saved.entries[i].key, saved.entries[i].cost, err);
    for (size_t i = 0; i < t->n && status == STRATA_OK; i++)
        status = cost_table_put(&all, t->entries[i].key, t->entries[i].cost, err);
    if (status == STRATA_OK && all.n == 0)
        unlink(path);
    else if (status == STRATA_OK)
        status = cost_table_write(&all, path, err);
    file_unlock(lock);
    cost_table_free(&saved);
    cost_table_free(&all);
    return status;
}

static void tell(const struct planner *planner, struct cost_source *source)
{
    const struct cost_report *r = &planner->costs;
    if (r->measured)
        log_line(STRATA_LOG_INFO, "measured %zu of %zu costs in %.2f s, %zu plans",
                 r->measured, r->queries, r->seconds, r->solved);
    if (r->complete || r->kind != COSTS_MEASURE || source->told_late)
        return;
    source->told_late = true;
    log_line(STRATA_LOG_WARNING,
             "the time for measuring ran out: %zu of %zu costs are measured, others "
             "are from the analytic model; run again to go on from there where "
             "measured costs are kept, or raise build.costs_budget",
             planner->known.n, r->queries);
}

enum cost_kind cost_kind_of(enum cost_kind kind)
{
    const char *word = secure_getenv("STRATA_COSTS");
    if (kind != COSTS_DEFAULT)
        return kind;
    if (word && strcmp(word, "analytic") != 0 && strcmp(word, "measure") != 0)
        log_line(STRATA_LOG_WARNING,
                 "STRATA_COSTS=%s says nothing; it is analytic or measure", word);
    return word && strcmp(word, "analytic") == 0 ? COSTS_ANALYTIC : COSTS_MEASURE;
}

/* Costs of a kind other than analytic. */
static int plan_by_table(struct planner *planner, struct cost_table *table,
                         struct cost_source *source, const struct cost_options *o,
                         strata_error *err)
{
    const bool measures = o->kind == COSTS_MEASURE || o->miss == MISS_MEASURE;
    int status = cost_plan_from(planner, table, measures ? source : NULL, o, err);
    planner->costs.loaded = cost_table_loaded(&planner->known);
    return status;
}

/* What an interrupted build leaves. */
static void tell_kept(int status, const struct planner *planner, const char *path,
                      strata_error *err)
{
    if (status == STRATA_EBUSY)
        error_append(err,
                     "; %s holds the %zu measured so far, and a run with the "
                     "same options goes on from there",
                     path, planner->costs.measured);
}

/* A plan of a busy hour is told, once for an engine, and what becomes of its costs. */
static void tell_busy(const struct planner *planner, struct cost_source *source,
                      const char *kept)
{
    const struct cost_report *r = &planner->costs;
    if (r->loaded && !source->told_busy)
        log_line(
            STRATA_LOG_WARNING,
            "the machine is busy: for %zu of %zu costs no quiet moment was found, so "
            "that this plan may not be the best; %s",
            r->loaded, planner->known.n, kept);
    source->told_busy |= r->loaded > 0;
}

/* The file that the user named: read first, and what is measured is added. */
static int plan_with_file(struct planner *planner, struct cost_table *table,
                          struct cost_source *source, const struct cost_options *o,
                          strata_error *err)
{
    int status = o->kind == COSTS_FILE ? cost_table_read(table, o->file, err) : STRATA_OK;
    if (status == STRATA_OK)
        status = read_saved(table, o->save, err);
    if (status == STRATA_OK)
        status = plan_by_table(planner, table, source, o, err);
    if (planner->costs.measured && !o->save)
        tell_busy(planner, source, "nothing is kept");
    if (!planner->costs.measured || !o->save)
        return status;
    tell_busy(planner, source, "they are saved with the others");
    int saved = save_table(table, o->save, false, NULL, err);
    if (saved == STRATA_OK)
        tell_kept(status, planner, o->save, err);
    return status != STRATA_OK ? status : saved;
}

/* Beside the costs of quiet moments: a busy machine plans from them, a quiet one does
 * not read them. */
static char *busy_path(const char *path)
{
    return text_print("%s.busy", path);
}

/* Quiet costs, and the others beside them, of which those that are quiet now go. anew:
 * what was saved before goes. */
static int save_parts(const struct cost_table *t, const char *path, bool anew,
                      strata_error *err)
{
    struct cost_table quiet, loaded;
    char *busy = busy_path(path);
    cost_table_init(&loaded, t->device);
    int status = cost_table_part(&quiet, t, false, err);
    if (status == STRATA_OK)
        status = cost_table_part(&loaded, t, true, err);
    if (status == STRATA_OK && !busy)
        status = error_no_memory(err, 0, "the name of a cost file");
    if (status == STRATA_OK && quiet.n > 0)
        status = save_table(&quiet, path, anew, NULL, err);
    if (status == STRATA_OK && (loaded.n > 0 || access(busy, F_OK) == 0))
        status = save_table(&loaded, busy, anew, &quiet, err);
    cost_table_free(&quiet);
    cost_table_free(&loaded);
    free(busy);
    return status;
}

/* The user's cache: whatever is wrong with it is told, and no reason to fail. `why` there
 * is none, where path is NULL. */
static void keep_in_cache(const struct cost_table *table, struct planner *planner,
                          struct cost_source *source, const char *path, strata_error *why)
{
    const bool large = cost_table_bytes(table) > COST_CACHE_MAX;
    const struct cost_table *t = large ? &planner->known : table;
    if (path && save_parts(t, path, large, why) == STRATA_OK)
        planner->costs.kept = true;
    else if (!source->told_unkept)
        log_line(STRATA_LOG_WARNING, "measured costs are not kept: %s", why->message);
    source->told_unkept |= !planner->costs.kept;
}

/* A damaged file is told, and gone. */
static int read_cache(struct cost_table *t, const char *path)
{
    strata_error why;
    error_clear(&why);
    const int found = read_saved(t, path, &why);
    const bool damaged = found == STRATA_EPARSE || found == STRATA_EMISMATCH;
    if (found != STRATA_OK)
        log_line(STRATA_LOG_WARNING, "%s%s", why.message,
                 damaged ? "; the file is made anew" : "");
    if (damaged)
        unlink(path);
    return found;
}

/* Whether it has a cost that `known` lacks. */
static bool has_more(const struct cost_table *t, const struct cost_table *known)
{
    for (size_t i = 0; i < t->n; i++)
        if (!cost_table_find(known, t->entries[i].key))
            return true;
    return false;
}

/* Costs of busy hours, where this is one and they are needed. */
static void read_busy(struct cost_table *t, const struct planner *planner,
                      const char *path)
{
    struct cost_table busy;
    char *name = busy_path(path);
    cost_table_init(&busy, t->device);
    if (name && access(name, F_OK) == 0 && read_cache(&busy, name) == STRATA_OK &&
        has_more(&busy, t) && busy_now(planner->threads)) {
        for (size_t i = 0; i < busy.n; i++)
            busy.entries[i].cost.loaded = true;
        cost_table_merge(t, &busy, NULL); /* no memory: it is measured anew */
    }
    cost_table_free(&busy);
    free(name);
}

static int plan_with_cache(struct planner *planner, struct cost_table *table,
                           struct cost_source *source, const struct cost_options *o,
                           strata_error *err)
{
    strata_error none;
    char *path = NULL;
    error_clear(&none);
    int status = cost_cache_path(&path, &planner->device.properties, &none);
    if (status == STRATA_ENOMEM)
        return error_no_memory(err, 0, "the name of a cost file");
    if (path && read_cache(table, path) == STRATA_OK)
        read_busy(table, planner, path);
    status = plan_by_table(planner, table, source, o, err);
    if (planner->costs.measured || planner->costs.mended)
        keep_in_cache(table, planner, source, path, &none);
    if (planner->costs.kept)
        tell_kept(status, planner, path, err);
    tell_busy(planner, source,
              "builds on a quiet machine measure these anew; or plan with "
              "--costs=analytic");
    free(path);
    return status;
}

int cost_save(const struct planner *planner, const struct cost_table *measured,
              strata_error *err)
{
    const struct cost_options *o = &planner->network->build.costs;
    char *path = NULL;
    if (o->save)
        return save_table(measured, o->save, false, NULL, err);
    if (o->kind != COSTS_DEFAULT)
        return STRATA_OK;
    int status = cost_cache_path(&path, &planner->device.properties, NULL);
    if (status == STRATA_ENOMEM)
        return error_no_memory(err, 0, "the name of a cost file");
    status =
        path ? save_parts(measured, path, false, err) : STRATA_OK; /* else it was told */
    free(path);
    return status;
}

int cost_plan(struct planner *planner, struct cost_source *source, strata_error *err)
{
    const struct build_options *build = &planner->network->build;
    struct cost_options o = build->costs;
    struct cost_table table;
    const bool cached = o.kind == COSTS_DEFAULT && !o.save;
    o.kind = cost_kind_of(o.kind);
    o.everything |= build->objective == OBJECTIVE_MEMORY;
    if (o.kind == COSTS_ANALYTIC) {
        planner->costs = (struct cost_report){.kind = o.kind};
        return plan_solve(&planner->plan, &planner->model->problem,
                          &planner->plan_options, err);
    }
    if (cached && o.budget == 0 && planner->device.properties.kind == STRATA_HOST)
        o.budget = DEFAULT_BUDGET;
    cost_table_init(&table, planner->device.properties.build);
    int status =
        (cached ? plan_with_cache : plan_with_file)(planner, &table, source, &o, err);
    if (status == STRATA_OK)
        tell(planner, source);
    cost_table_free(&table);
    return status;
}
