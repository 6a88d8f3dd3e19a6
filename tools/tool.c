/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects that the subcommands share: the registry, the network, the engine.
 */
#include "tools/tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/file/stored.h"
#include "io/file.h"
#include "planner/cost/progress.h"
#include "tools/import/model.h"

int tool_open_registry(struct tool_session *s, const struct tool_options *o,
                       strata_error *err)
{
    strata_registry_options options = {
        .struct_size = sizeof options,
        .files = o->plugins,
        .n_files = o->n_plugins,
        .search_path = o->plugin_path,
        .allow_untrusted = o->allow_untrusted,
    };
    return strata_registry_create(&s->registry, &options, err);
}

/* The command's paths start from the working folder, the INI file's from its own. */
static int set_costs(struct cost_options *c, const struct tool_options *o,
                     strata_error *err)
{
    if (o->costs) {
        c->kind = cost_kind_named(o->costs);
        free(c->file);
        c->file = NULL;
        if (c->kind == COSTS_FILE && !(c->file = duplicate(o->costs, err)))
            return STRATA_ENOMEM;
    }
    if (o->save_costs && !(c->save = duplicate(o->save_costs, err)))
        return STRATA_ENOMEM;
    c->everything = o->measure_all;
    return STRATA_OK;
}

static int check_costs(const struct tool_session *s, const struct tool_options *o,
                       strata_error *err)
{
    const struct cost_options *c = &s->network->build.costs;
    const enum cost_kind kind = cost_kind_of(c->kind);
    if (o->costs && kind == COSTS_FILE && access(c->file, F_OK) != 0)
        return error_errno(err, STRATA_ENOTFOUND,
                           "--costs %s: neither auto, measure nor analytic, nor a cost "
                           "file that is there",
                           o->costs);
    bool measures =
        kind == COSTS_MEASURE || (kind == COSTS_FILE && c->miss == MISS_MEASURE);
    if ((o->save_costs || o->measure_all) && !measures)
        return error_set(err, STRATA_EINVAL,
                         "%s: nothing is measured; add --costs=measure, or "
                         "--set build.costs_miss=measure to a cost file",
                         o->save_costs ? "--save-costs" : "--measure-all");
    int status = measures && c->save ? tool_refuse_dash(c->save, err) : STRATA_OK;
    return status == STRATA_OK && measures && c->save ? file_writable(c->save, err)
                                                      : status;
}

int tool_refuse_engine(const char *path, strata_error *err)
{
    return engine_file_at(path)
               ? error_set(err, STRATA_EINVAL,
                           "%s: is an engine already; give a network's INI file", path)
               : STRATA_OK;
}

int tool_refuse_dash(const char *path, strata_error *err)
{
    return strcmp(path, "-") == 0
               ? error_set(err, STRATA_EINVAL,
                           "-: this is not written to standard output; name a file, "
                           "./- for one of that name")
               : STRATA_OK;
}

int tool_refuse_source(const struct tool_options *o, const struct tool_session *s,
                       const char *path, strata_error *err)
{
    const char *is =
        network_reads(s->network, path) || (s->given && file_same(s->given, path))
            ? "the network is made of it"
            : NULL;
    for (size_t i = 0; i < o->n_inputs; i++)
        if (file_same(tool_file_of(s->network, o->inputs[i]), path))
            is = "it is an input";
    return is ? error_set(err, STRATA_EINVAL,
                          "%s: would be replaced, but %s; name another file for what is "
                          "written",
                          path, is)
              : STRATA_OK;
}

static const char *output_path(const struct tool_options *o, const strata_network *net,
                               size_t i)
{
    return o->outputs_named ? tool_file_of(net, o->outputs[i]) : o->outputs[i];
}

/* Before costs are measured: what takes minutes must not be lost to a wrong name. */
static int check_outputs(const struct tool_session *s, const struct tool_options *o,
                         strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < o->n_outputs && status == STRATA_OK; i++) {
        const char *path = output_path(o, s->network, i);
        status = o->outputs_piped ? STRATA_OK : tool_refuse_dash(path, err);
        const bool file = strcmp(path, "-") != 0;
        if (status == STRATA_OK && file)
            status = tool_refuse_source(o, s, path, err);
        if (status == STRATA_OK && file)
            status = file_writable(path, err);
        for (size_t k = 0; k < i && status == STRATA_OK; k++)
            if (strcmp(path, output_path(o, s->network, k)) == 0)
                status =
                    error_set(err, STRATA_EINVAL,
                              "%s: would be written twice; name a file for each", path);
    }
    return status;
}

/* A misspelt name is told before costs are measured, not after. */
static int check_inputs(const struct tool_session *s, const struct tool_options *o,
                        strata_error *err)
{
    for (size_t i = 0; i < o->n_inputs; i++) {
        const char *file = tool_file_of(s->network, o->inputs[i]);
        if (strncmp(file, "random:", 7) != 0 && access(file, R_OK) != 0)
            return error_errno(err, errno == ENOENT ? STRATA_ENOTFOUND : STRATA_EIO,
                               "%s: cannot be opened", file);
    }
    return STRATA_OK;
}

static bool is_given(const struct tool_options *o, const char *name)
{
    const size_t n = strlen(name);
    for (size_t i = 0; i < o->n_inputs; i++)
        if (strncmp(o->inputs[i], name, n) == 0 && o->inputs[i][n] == '=')
            return true;
    return false;
}

/* That one is missing is told before, too; as many with other names, as they are read. */
static int check_given(const strata_network *net, const struct tool_options *o,
                       strata_error *err)
{
    const size_t n_bound = net->n_inputs - net->n_states; /* the states are last */
    for (size_t i = 0; i < n_bound && o->n_inputs < n_bound; i++) {
        const char *name = net->inputs[i].name;
        if (!is_given(o, name))
            return error_set(err, STRATA_EINVAL,
                             "input '%s' is not given; add --input %s=FILE, or "
                             "--input %s=random:1",
                             name, name, name);
    }
    return STRATA_OK;
}

static int check_files(const struct tool_session *s, const struct tool_options *o,
                       strata_error *err)
{
    int status = check_inputs(s, o, err);
    if (status == STRATA_OK && o->inputs_needed)
        status = check_given(s->network, o, err);
    return status == STRATA_OK ? check_outputs(s, o, err) : status;
}

int tool_open_network(struct tool_session *s, const struct tool_options *o,
                      const char *path, strata_error *err)
{
    strata_network_options options = {
        .struct_size = sizeof options,
        .set = o->set,
        .n_set = o->n_set,
        .define = o->define,
        .n_define = o->n_define,
    };
    char *ini = NULL;
    int status = tool_refuse_engine(path, err);
    s->given = path;
    if (status == STRATA_OK)
        status = tool_open_registry(s, o, err);
    if (status == STRATA_OK && model_is_onnx(path)) {
        status = model_cached(&ini, path, s->registry, err);
        path = ini;
    }
    if (status == STRATA_OK)
        status = strata_network_load(&s->network, path, s->registry, &options, err);
    free(ini);
    if (status == STRATA_OK)
        status = set_costs(&s->network->build.costs, o, err);
    return status == STRATA_OK ? check_files(s, o, err) : status;
}

static void interrupt(int number)
{
    (void)number;
    progress_interrupt();
}

/* A wait of seconds is explained, once for a network and a machine. */
static void note_costs(const struct tool_session *s, bool by_default)
{
    const struct cost_report *r = &s->engine->planner->costs;
    char *path = NULL;
    if (!by_default || r->seconds < 0.5 || !r->kept ||
        cost_cache_path(&path, &s->handle->properties, NULL) != STRATA_OK)
        return;
    if (log_level() >= STRATA_LOG_WARNING)
        fprintf(stderr,
                "strata: note: measured %zu costs on this machine in %.1f s, kept in "
                "%s%s; --costs=analytic plans without\n",
                r->measured, r->seconds, path,
                access(path, F_OK) == 0 ? "" : ".busy"); /* no quiet moment */
    free(path);
}

static const int signals[TOOL_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};

void tool_begin_work(struct tool_signals *s)
{
    struct sigaction catch = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
    progress_enable(true);
    for (size_t i = 0; i < TOOL_SIGNALS; i++) {
        sigaction(signals[i], NULL, &s->before[i]);
        if (signals[i] != SIGHUP || s->before[i].sa_handler != SIG_IGN) /* nohup */
            sigaction(signals[i], &catch, NULL);
    }
}

void tool_end_work(const struct tool_signals *s)
{
    for (size_t i = 0; i < TOOL_SIGNALS; i++)
        sigaction(signals[i], &s->before[i], NULL);
    progress_enable(false);
}

/* A measurement ends between two runs and keeps what it has; anything else at once. */
static int build_engine(struct tool_session *s, const struct tool_options *o,
                        strata_error *err)
{
    struct tool_signals before;
    const enum cost_kind kind = s->network->build.costs.kind;
    const bool measures = cost_kind_of(kind) != COSTS_ANALYTIC;
    if (s->network->build.trials == TRIALS_UNSAID)
        s->network->build.trials = o->trials;
    if (measures)
        tool_begin_work(&before);
    int status = strata_engine_build(&s->engine, s->handle, s->network, err);
    if (measures)
        tool_end_work(&before);
    status = tool_file_status(status, err); /* the device is there */
    if (status == STRATA_OK && measures)
        note_costs(s, kind == COSTS_DEFAULT && !s->network->build.costs.save);
    return status;
}

/* On the device it was built for, unless the user names one. */
static int load_engine(struct tool_session *s, const struct tool_options *o,
                       const char *path, strata_error *err)
{
    struct engine_file file;
    char device[16] = "";
    int status = tool_check_built(o, path, err);
    if (status == STRATA_OK)
        status = tool_open_registry(s, o, err);
    if (status == STRATA_OK)
        status = tool_file_status(engine_file_open(&file, path, err), err);
    if (status != STRATA_OK)
        return status;
    status = engine_file_device(device, sizeof device, &file, err);
    if (status == STRATA_OK)
        status = strata_create(&s->handle, o->device ? o->device : device, err);
    if (status == STRATA_OK)
        status = tool_set_built(s->handle, o, err);
    if (status == STRATA_OK)
        status = engine_load_file(&s->engine, s->handle, s->registry, &file, path, err);
    engine_file_close(&file);
    if (status == STRATA_OK)
        s->network = network_retain(s->engine->network);
    return status == STRATA_OK ? check_files(s, o, err) : status;
}

int tool_open_device(struct tool_session *s, const struct tool_options *o,
                     strata_error *err)
{
    const char *device = o->device;
    if (!device && strcmp(s->network->runtime.device, "auto") != 0)
        device = s->network->runtime.device;
    return strata_create(&s->handle, device, err);
}

int tool_prepare(struct tool_session *s, const struct tool_options *o, const char *path,
                 strata_error *err)
{
    const bool built = engine_file_at(path);
    int status =
        built ? load_engine(s, o, path, err) : tool_open_network(s, o, path, err);
    if (status == STRATA_OK && !built)
        status = tool_open_device(s, o, err);
    if (status == STRATA_OK && !built)
        status = check_costs(s, o, err);
    if (status == STRATA_OK && !built && o->look)
        status = o->look(o->look_of, s->network, err);
    return status;
}

int tool_plan(struct tool_session *s, const struct tool_options *o, strata_error *err)
{
    return s->engine ? STRATA_OK : build_engine(s, o, err);
}

int tool_open_engine(struct tool_session *s, const struct tool_options *o,
                     const char *path, strata_error *err)
{
    int status = tool_prepare(s, o, path, err);
    return status == STRATA_OK ? tool_plan(s, o, err) : status;
}

void tool_close(struct tool_session *s)
{
    strata_engine_destroy(s->engine);
    strata_network_destroy(s->network);
    strata_destroy(s->handle);
    strata_registry_destroy(s->registry);
    *s = (struct tool_session){0};
}

void tool_dims(char *text, size_t size, const int64_t *dims, int rank)
{
    size_t used = 0;
    text[0] = '\0';
    for (int d = 0; d < rank && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, d ? " x %lld" : "%lld",
                                 (long long)dims[d]);
}
