/* SPDX-License-Identifier: Apache-2.0
 *
 * strata list: layers and impls, modules, and the files that were refused.
 */
#include "tools/tool.h"

#include <stdlib.h>
#include <string.h>

#include "registry/probe.h"

enum { OPTION_MODULES = TOOL_OWN, OPTION_REJECTED };

static const struct option options[] = {
    {"modules", no_argument, NULL, OPTION_MODULES},
    {"rejected", no_argument, NULL, OPTION_REJECTED},
    {0},
};

static void add_impl(struct table *t, const struct registry_layer *l,
                     const struct registry_impl *impl)
{
    static const char *const devices[] = {[STRATA_HOST] = "host", [STRATA_CUDA] = "cuda"};
    uint64_t formats = 0;
    char names[1024] = "";
    size_t used = 0;
    for (uint32_t r = 0; r < impl->impl.rows.n; r++)
        formats |= impl->rows[r].in[0] | impl->rows[r].out[0];
    for (int f = 0; f < STRATA_FORMAT_COUNT && used < sizeof names; f++)
        if (formats & UINT64_C(1) << f)
            used +=
                (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                 used ? " " : "", format_mask_name(UINT64_C(1) << f, 4));
    struct module_info m = module_info(impl->module);
    table_cell(t, "%s", l->full_name);
    table_cell(t, "%s", impl->impl.name);
    table_cell(t, "%s", devices[impl->impl.device]);
    table_cell(t, "%s", names);
    table_cell(t, "%s", m.path);
}

/* Code runs first in a child: what would end this process is refused by its reason. */
static int refuse_deadly(strata_registry *r, strata_error *err)
{
    char why[512];
    int status = STRATA_OK;
    for (size_t i = 0; i < registry_modules(r) && status == STRATA_OK; i++) {
        const struct module_info m = registry_module(r, i);
        if (!m.loaded && !registry_survives(m.path, PROBE_TIMEOUT_MS, why, sizeof why))
            status = registry_refuse(r, i, why, err);
    }
    return status;
}

/* Files that the user names are loaded as soon as there is a registry. */
static int check_named(const struct tool_options *o, strata_error *err)
{
    char why[512];
    for (size_t i = 0; i < o->n_plugins; i++)
        if (!registry_survives(o->plugins[i], PROBE_TIMEOUT_MS, why, sizeof why))
            return error_set(err, STRATA_EMODULE, "plugin %s: %s", o->plugins[i], why);
    return STRATA_OK;
}

static void add_layer(struct table *t, const struct registry_layer *l)
{
    for (size_t k = 0; k < l->n_impls; k++)
        add_impl(t, l, &l->impls[k]);
}

static int add_all(struct table *t, strata_registry *r, strata_error *err)
{
    int status = registry_load_all(r, err);
    for (size_t i = 0; status == STRATA_OK && i < registry_layers(r); i++)
        add_layer(t, registry_layer_at(r, i));
    if (status != STRATA_OK || registry_layers(r) > 0)
        return status;
    return error_set(err, STRATA_ENOTFOUND, "%s",
                     registry_rejections(r) > 0
                         ? "no layer: every plugin file was rejected; see `strata list "
                           "--rejected`"
                         : REGISTRY_NO_PLUGIN);
}

/* Of the layers named, or of all. */
static int list_layers(strata_registry *r, char **names, int n, int format,
                       strata_error *err)
{
    static const char *const columns[] = {"layer", "impl", "device", "formats", "module"};
    const struct registry_layer *layer;
    struct table t;
    table_open(&t, columns, ARRAY_LENGTH(columns), 0);
    int status = refuse_deadly(r, err);
    if (status == STRATA_OK && n == 0)
        status = add_all(&t, r, err);
    for (int i = 0; i < n && status == STRATA_OK; i++)
        if ((status = registry_find(r, names[i], &layer, err)) == STRATA_OK)
            add_layer(&t, layer);
    if (status == STRATA_OK)
        table_print(&t, format, stdout);
    table_close(&t);
    return status;
}

static void list_modules(strata_registry *r, int format)
{
    static const char *const columns[] = {"namespace", "version",  "ABI",
                                          "layers",    "build id", "file"};
    struct table t;
    table_open(&t, columns, ARRAY_LENGTH(columns), 0);
    for (size_t i = 0; i < registry_modules(r); i++) {
        struct module_info m = registry_module(r, i);
        table_cell(&t, "%s", m.ns);
        table_cell(&t, "%s", m.version);
        table_cell(&t, "%d.%u", STRATA_ABI_MAJOR, m.abi_minor);
        table_cell(&t, "%s", m.layers);
        table_cell(&t, "%.12s%s", m.build_id, m.duplicate ? " (duplicate)" : "");
        table_cell(&t, "%s", m.path);
    }
    table_print(&t, format, stdout);
    table_close(&t);
}

/* Notes are judged here; code runs first in a child, so that a constructor that crashes
 * or hangs is reported like any other fault. */
static void list_rejected(strata_registry *r, int format)
{
    static const char *const columns[] = {"file", "reason"};
    struct table t;
    table_open(&t, columns, ARRAY_LENGTH(columns), 0);
    for (size_t i = 0; i < registry_rejections(r); i++) {
        struct module_rejection rejection = registry_rejection(r, i);
        table_cell(&t, "%s", rejection.path);
        table_cell(&t, "%s", rejection.reason);
    }
    for (size_t i = 0; i < registry_modules(r); i++) {
        struct module_info m = registry_module(r, i);
        char why[1024];
        if (registry_probe(m.path, PROBE_TIMEOUT_MS, why, sizeof why) == STRATA_OK)
            continue;
        table_cell(&t, "%s", m.path);
        table_cell(&t, "%s", why);
    }
    if (t.n_cells == 0 && format == TABLE_TEXT)
        tool_print("no file was rejected in %zu folders\n", registry_folders(r));
    else
        table_print(&t, format, stdout);
    table_close(&t);
}

static int run_list(int argc, char **argv)
{
    struct tool_options o = {0};
    struct tool_session s = {0};
    strata_error err;
    int option, what = 0, code = EXIT_OK;
    error_clear(&err);
    while ((option = tool_next_option(&o, argc, argv, options)) != -1) {
        if (option == '?') {
            code = EXIT_USAGE;
            goto done;
        }
        what = option;
    }
    if (o.help) {
        code = tool_help(&tool_list);
        goto done;
    }
    if (optind < argc && what) {
        code = tool_usage(&tool_list, "layers are listed without --%s, but '%s' is given",
                          what == OPTION_MODULES ? "modules" : "rejected", argv[optind]);
        goto done;
    }
    code = tool_check_unused(&tool_list, &o, USES_PLUGINS | USES_FORMAT);
    if (code != EXIT_OK)
        goto done;
    int status = check_named(&o, &err);
    if (status == STRATA_OK)
        status = tool_open_registry(&s, &o, &err);
    if (status == STRATA_OK && what == OPTION_REJECTED)
        list_rejected(s.registry, o.format);
    else if (status == STRATA_OK && what == OPTION_MODULES)
        list_modules(s.registry, o.format);
    else if (status == STRATA_OK)
        status = list_layers(s.registry, argv + optind, argc - optind, o.format, &err);
    if (status != STRATA_OK)
        code = tool_fail(&err);
done:
    tool_close(&s);
    tool_options_free(&o);
    return code;
}

const struct tool_command tool_list = {
    .name = "list",
    .summary = "List layers, their impls and formats, modules, rejected files",
    .usage =
        "[LAYER...] [OPTION...]\n   or: strata list --modules | --rejected [OPTION...]",
    .help =
        "Options:\n"
        "      --modules   plugin files found, from their notes, without loading them\n"
        "      --rejected  plugin files that were refused, and why; each file found is\n"
        "                  also loaded once in a child process\n",
    .examples = "  strata list\n"
                "  strata list Convolution Pooling\n"
                "  strata list --rejected\n"
                "  strata list --plugin ./my_layer.so -o json\n",
    .run = run_list,
};
