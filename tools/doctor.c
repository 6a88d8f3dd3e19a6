/* SPDX-License-Identifier: Apache-2.0
 *
 * strata doctor: what this installation has, and what is wrong with it.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "tools/tool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/host/wait.h"
#include "core/installed.h"
#include "planner/cost/busy.h"

static const char *cpu_level(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        return "x86-64, AVX-512";
    if (__builtin_cpu_supports("avx2"))
        return "x86-64, AVX2";
    return "x86-64";
#elif defined(__aarch64__)
    return "aarch64";
#else
    return "other";
#endif
}

static void row(struct table *t, const char *what, const char *format, ...)
    PRINTF_LIKE(3, 4);
static void row(struct table *t, const char *what, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    table_cell(t, "%s", what);
    table_cell(t, "%s", text);
}

static void device_rows(struct table *t, const struct tool_options *o)
{
    strata_error err;
    strata_handle *h = NULL;
    error_clear(&err);
    if (strata_create(&h, o->device, &err) != STRATA_OK) {
        row(t, "device", "%s", err.message);
        return;
    }
    row(t, "device", "%s, %s, %d threads in a kernel", h->properties.name, cpu_level(),
        h->properties.threads);
    strata_destroy(h);
    if (o->device)
        return;
    if (strata_create(&h, "cuda:0", &err) != STRATA_OK) {
        row(t, "cuda", "not used: %s", err.message);
        return;
    }
    row(t, "cuda", "%s, compute capability %d.%d; used with --device=cuda",
        h->properties.name, h->properties.sm / 10, h->properties.sm % 10);
    strata_destroy(h);
}

static void load_row(struct table *t)
{
    const double load = busy_load();
    const int n = busy_processors();
    if (load < 0)
        row(t, "load", "not told by the system; %d processors", n);
    else
        row(t, "load", "%.2f threads on %d processors, average of a minute%s", load, n,
            load > n ? ": oversubscribed, runs take longer and times vary" : "");
}

/* What threads of a run do while they wait for each other. */
static void wait_row(struct table *t)
{
    const char *set = wait_decider();
    if (set)
        row(t, "waiting", "by %s=%s in the environment, whatever [runtime] wait says",
            set, getenv(set));
    else
        row(t, "waiting",
            "yield, unless [runtime] wait says otherwise: threads spin, and sleep while "
            "the machine is busy");
}

static void device_folder_rows(struct table *t)
{
    struct installed_folder folders[INSTALLED_FOLDERS];
    const size_t n = installed_folders(folders, INSTALLED_DEVICES);
    const char *path = secure_getenv("STRATA_DEVICE_PATH");
    if (path && path[0])
        row(t, "device folder", "%s (STRATA_DEVICE_PATH)", path);
    for (size_t i = 0; i < n; i++)
        row(t, "device folder", "%s%s", folders[i].path,
            access(folders[i].path, F_OK) == 0 ? "" : " (does not exist)");
}

static void plugin_rows(struct table *t, const strata_registry *r)
{
    for (size_t i = 0; i < registry_folders(r); i++)
        row(t, "plugin folder", "%s%s", registry_folder(r, i),
            registry_folder_exists(r, i) ? "" : " (does not exist)");
    row(t, "modules", "%zu found, %zu files rejected%s", registry_modules(r),
        registry_rejections(r),
        registry_rejections(r) ? " (see `strata list --rejected`)" : "");
    for (size_t i = 0; i < registry_modules(r); i++) {
        struct module_info m = registry_module(r, i);
        row(t, "module", "%s %s, ABI %d.%u: %s (%s)", m.ns, m.version, STRATA_ABI_MAJOR,
            m.abi_minor, m.layers, m.path);
    }
}

static int run_doctor(int argc, char **argv)
{
    static const char *const columns[] = {"what", "found"};
    struct tool_options o = {0};
    struct tool_session s = {0};
    struct table t;
    strata_error err;
    int option, code = EXIT_OK;
    error_clear(&err);
    while ((option = tool_next_option(&o, argc, argv, NULL)) != -1)
        if (option == '?') {
            tool_options_free(&o);
            return EXIT_USAGE;
        }
    if (o.help) {
        tool_options_free(&o);
        return tool_help(&tool_doctor);
    }
    if (optind < argc) {
        tool_options_free(&o);
        return tool_usage(&tool_doctor, "no argument is taken, but '%s' is given",
                          argv[optind]);
    }
    if (tool_check_unused(&tool_doctor, &o, USES_DEVICE | USES_PLUGINS | USES_FORMAT)) {
        tool_options_free(&o);
        return EXIT_USAGE;
    }
    table_open(&t, columns, ARRAY_LENGTH(columns), 0);
    row(&t, "strata", "%s, plugin ABI %d.%d", strata_version(), STRATA_ABI_MAJOR,
        STRATA_ABI_MINOR);
    row(&t, "images", "%s", image_formats());
    device_rows(&t, &o);
    load_row(&t);
    wait_row(&t);
    device_folder_rows(&t);
    if (tool_open_registry(&s, &o, &err) == STRATA_OK)
        plugin_rows(&t, s.registry);
    else
        row(&t, "plugins", "%s", err.message);
    bool no_modules = !s.registry || registry_modules(s.registry) == 0;
    if (no_modules) {
        row(&t, "problem", REGISTRY_NO_PLUGIN);
        code = EXIT_USAGE;
    }
    table_print(&t, o.format, stdout);
    table_close(&t);
    tool_close(&s);
    tool_options_free(&o);
    return code;
}

const struct tool_command tool_doctor = {
    .name = "doctor",
    .summary = "Report devices, plugin folders and modules, and what is wrong",
    .usage = "[OPTION...]",
    .help = "",
    .examples = "  strata doctor\n"
                "  strata doctor -o json\n",
    .run = run_doctor,
};
